// A server of a test's own, on a free port of this machine.
import { createServer, type Server } from "node:net";

/** Answers with its origin. */
export async function listenLocally(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

/** For a process that is told its port; nothing listens there yet. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  const { port } = new URL(await listenLocally(probe));
  await new Promise((resolve) => probe.close(resolve));
  return Number(port);
}
