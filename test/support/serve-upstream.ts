// An upstream down at its sockets: it answers each path with the bytes, the pauses and the breaks that a test wants.
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { listenLocally } from "./serve-locally.ts";

export type Script = (socket: Socket, request: string) => void | Promise<void>;

export class RawUpstream {
  /** The heads of what was asked. */
  readonly heads: string[] = [];
  readonly #server: NetServer;
  readonly #scripts: ReadonlyMap<string, Script>;
  readonly #sockets = new Set<Socket>();
  #url = "";

  constructor(scripts: ReadonlyMap<string, Script>) {
    this.#scripts = scripts;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async listen(): Promise<this> {
    this.#url = await listenLocally(this.#server);
    return this;
  }

  get url(): string {
    return this.#url;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /**
   * The model's name in the path chooses the script; every connection serves one request. A small body is read to its
   * end first: closing a socket on what was not read resets it, and the client may lose the answer.
   */
  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => {});
    let text = "";
    const take = (data: Buffer) => {
      text += data.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0);
      if (length < 10_000 && text.length < end + 4 + length) return;
      socket.off("data", take);
      const head = text.slice(0, end);
      this.heads.push(head);
      const name = /^\w+ \/v2\/([\w-]+)\//.exec(head)?.[1] ?? "";
      const script = this.#scripts.get(name);
      if (!script) socket.destroy();
      else void Promise.resolve(script(socket, head)).catch(() => socket.destroy());
    };
    socket.on("data", take);
  }
}

/** An answer as bytes, with its length stated. */
export function answer(
  body: string | Buffer,
  { status = "200 OK", type = "application/json", headers = "" } = {},
): Buffer {
  const bytes = Buffer.from(body);
  const head = [
    `HTTP/1.1 ${status}`,
    `Content-Type: ${type}`,
    `Content-Length: ${bytes.byteLength}`,
    "Connection: close",
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n${headers}\r\n`), bytes]);
}
