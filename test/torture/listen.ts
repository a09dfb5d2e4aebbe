// How a stand-in listens again at its own port, which a connection of somebody else's may have taken meanwhile.
import type { Server } from "node:http";
import { pause } from "./pace.ts";

const tries = 200;
const pauseMs = 50;

export async function listenAgain(server: Server, port: number): Promise<void> {
  for (let left = tries; ; left--) {
    const error = await tryOnce(server, port);
    if (!error) return;
    if (error.code !== "EADDRINUSE" || left === 0) throw error;
    await pause(pauseMs);
  }
}

function tryOnce(server: Server, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    server.once("error", resolve);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", resolve);
      resolve(undefined);
    });
  });
}
