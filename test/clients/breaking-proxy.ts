// A network between the client and the gateway: it loses the first answer of each kind, and cuts a job's events twice.
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { listenLocally } from "../support/serve-locally.ts";

/** Two streams break, each after so many chunks; of the second one the last chunk is lost. */
const streamsThatBreak = 2;
const chunksTold = 2;

export class BreakingProxy {
  readonly #gateway: string;
  readonly #server: Server = createServer((request, response) => this.#pass(request, response));
  readonly #lost = new Set<string>();
  readonly #opened = new Map<number, () => void>();
  #streams = 0;
  /** Streams that broke. */
  cuts = 0;
  url = "";

  static async open(gateway: string): Promise<BreakingProxy> {
    const proxy = new BreakingProxy(gateway);
    proxy.url = await listenLocally(proxy.#server);
    return proxy;
  }

  private constructor(gateway: string) {
    this.#gateway = gateway;
  }

  close(): void {
    for (const resolve of this.#opened.values()) resolve();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Once so many streams of a story were opened: what is told then is on the way in the last of them. */
  streams(count: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#streams >= count) resolve();
      else this.#opened.set(count, resolve);
    });
  }

  #pass(request: IncomingMessage, response: ServerResponse): void {
    const { method, headers, url = "/" } = request;
    const passed = httpRequest(this.#gateway + url, { method, headers, agent: false }, (answer) => {
      if (method !== "OPTIONS" && this.#loses(url)) {
        answer.resume().on("end", () => response.destroy());
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      if (method === "GET" && url.includes("/storyteller/events/")) this.#cut(answer, response);
      else answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    request.pipe(passed);
  }

  /** Never a stream. */
  #loses(url: string): boolean {
    const kind = /\/(run|usage|cancel|status)\b/.exec(url)?.[1];
    if (kind === undefined || this.#lost.has(kind) || url.includes("/storyteller/")) return false;
    this.#lost.add(kind);
    return true;
  }

  #cut(answer: IncomingMessage, response: ServerResponse): void {
    const stream = ++this.#streams;
    response.flushHeaders();
    this.#opened.get(stream)?.();
    if (stream > streamsThatBreak) {
      answer.pipe(response);
      return;
    }
    const lost = stream === 1 ? Number.POSITIVE_INFINITY : 1;
    let passedOn = 0;
    let heard = "";
    answer.on("data", (data: Buffer) => {
      heard += data;
      const chunks = [...heard.matchAll(/event: chunk/g)].map(({ index }) => index);
      const end = chunks[lost] ?? heard.length;
      response.write(heard.slice(passedOn, end));
      passedOn = end;
      if (chunks.length < chunksTold || this.cuts === stream) return;
      this.cuts = stream;
      response.socket?.end();
    });
  }
}
