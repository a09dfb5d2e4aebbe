// KV, R2 and the Cache API in this process: they outlive the gateway's kills, have troubles of their own, and look for the
// key in whatever is stored.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Store } from "../support/serve-config.ts";
import { freePort } from "../support/serve-locally.ts";
import { history } from "./history.ts";
import type { KeyWatch } from "./key-watch.ts";
import { listenAgain } from "./listen.ts";
import { pause, readBytes } from "./pace.ts";

export type Trouble = "fails" | "refuses" | "is slow";
/** Within what every call of a store may take. */
const slowestMs = 1_500;

interface Stub {
  fetch(request: Request): Response | Promise<Response>;
}

export class StandIn {
  readonly store: Store;
  readonly #stub: Stub;
  readonly #port: number;
  readonly #watch: KeyWatch;
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy());
  });
  #trouble: Trouble | undefined;
  #calls = 0;
  /** Whatever else is wrong: it is read, and takes nothing new, as where a day's writes are used up. */
  takesNothing = false;

  static async serve(store: Store, watch: KeyWatch): Promise<StandIn> {
    const stub = (await import(`../support/stubs/${store}.js`)) as { default: Stub };
    const standIn = new StandIn(store, stub.default, await freePort(), watch);
    await standIn.#listen();
    return standIn;
  }

  private constructor(store: Store, stub: Stub, port: number, watch: KeyWatch) {
    this.store = store;
    this.#stub = stub;
    this.#port = port;
    this.#watch = watch;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get calls(): number {
    return this.#calls;
  }

  /** Until it has none again. */
  async haveTrouble(trouble: Trouble | undefined): Promise<void> {
    if (trouble === "refuses") await this.close();
    else if (this.#trouble === "refuses") await this.#listen();
    this.#trouble = trouble;
  }

  #listen(): Promise<void> {
    return listenAgain(this.#server, this.#port);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBytes(request);
    this.#calls += 1;
    if (this.#trouble === "is slow") await pause((this.#calls % 4) * (slowestMs / 4));
    const isWrite = request.method === "PUT" || request.method === "DELETE";
    const what = `${this.store}: ${request.method} ${decodeURIComponent(request.url ?? "")}`;
    history.note(`${what} ${this.takesNothing ? "(takes nothing)" : (this.#trouble ?? "")} ${beginOf(body)}`);
    if (this.takesNothing && isWrite) return void response.writeHead(429).end();
    // Half of what fails was done all the same.
    if (this.#trouble === "fails" && this.#calls % 2 === 0) return void response.writeHead(500).end();
    if (body.byteLength > 0) this.#watch.look(nameOf[this.store], body, request.url);
    const answer = await this.#stub.fetch(requestOf(request, body));
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (this.#trouble === "fails") return void response.writeHead(500).end();
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(bytes);
  }
}

/** Of what is no text as well. */
function beginOf(body: Buffer): string {
  return body.subarray(0, 200).toString("latin1");
}

const nameOf: Readonly<Record<Store, string>> = { kv: "a value of KV", r2: "a value of R2", cache: "the cache" };

function requestOf({ method = "GET", url, headers }: IncomingMessage, body: Buffer): Request {
  const named = Object.entries(headers).flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : []));
  const allowed = named.filter(([name = ""]) => !forbidden.has(name)) as [string, string][];
  const init = { method, headers: allowed, ...(body.byteLength > 0 && { body: new Uint8Array(body) }) };
  return new Request(`http://${headers.host}${url}`, init);
}

/** What belongs to the connection and not to the request. */
const forbidden: ReadonlySet<string> = new Set(["host", "connection", "transfer-encoding", "content-length", "expect"]);
