// Where client webhooks arrive: receivers that take them, fail, redirect, hang or break off. None is told more than it may be.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "../support/serve-locally.ts";
import { add } from "./counted.ts";
import type { KeyWatch } from "./key-watch.ts";
import { readBytes } from "./pace.ts";

export const moods = ["takes", "fails", "redirects", "hangs", "breaks off"].map((mood) => mood.replace(" ", "-"));
/** A try that its object did not outlive is made up for, three times at most. */
const mostTries = 6;

export interface Told {
  readonly n: number;
  readonly mood: string;
  readonly status: string;
  tries: number;
  /** It was answered as one that is received. */
  isTaken: boolean;
}

export class WebhookReceiver {
  /** By the webhook's id. */
  readonly told = new Map<string, Told>();
  readonly faults: string[] = [];
  readonly received = new Map<string, number>();
  /** Nobody hangs any more: of a host that does, a meter delivers two webhooks in ten seconds. */
  calm = false;
  /** Whatever their mood, they take the connection and never answer. */
  allHang = false;
  readonly #watch: KeyWatch;
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy());
  });
  url = "";

  constructor(watch: KeyWatch) {
    this.#watch = watch;
  }

  async listen(): Promise<this> {
    this.url = await listenLocally(this.#server);
    return this;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBytes(request);
    const [, mood = "", n = ""] = (request.url ?? "").split("/");
    add(this.received, mood);
    this.#watch.look("a webhook's body", body, request.url);
    this.#watch.look("a webhook's headers", JSON.stringify(request.rawHeaders), request.url);
    if (mood === "elsewhere") this.faults.push(`a webhook's redirect was followed: ${n}`);
    else this.#hear(String(request.headers["webhook-id"]), mood, Number(n), body.toString());
    if (this.allHang) return;
    if (mood === "takes") this.#take(response, String(request.headers["webhook-id"]));
    else if (mood === "fails") response.writeHead(500).end("no");
    else if (mood === "redirects") response.writeHead(307, { Location: `${this.url}/elsewhere/${n}` }).end();
    else if (mood === "breaks-off" || this.calm) response.destroy();
  }

  #take(response: ServerResponse, id: string): void {
    const told = this.told.get(id);
    if (told) told.isTaken = true;
    response.writeHead(204).end();
  }

  #hear(id: string, mood: string, n: number, body: string): void {
    const { status } = JSON.parse(body) as { status: string };
    const told = this.told.get(id) ?? { n, mood, status, tries: 0, isTaken: false };
    told.tries += 1;
    this.told.set(id, told);
    if (told.status !== status) this.faults.push(`webhook ${id} said ${told.status}, and then ${status}`);
    if (told.tries > mostTries) this.faults.push(`webhook ${id} was tried ${told.tries} times`);
  }
}
