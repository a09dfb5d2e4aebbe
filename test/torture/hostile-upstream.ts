// A model service at its worst: it takes jobs and breaks its answers, as each request's fate has it. It forgets no job.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "../support/serve-locally.ts";
import { type Fate, fateOf } from "./chance.ts";

export const upstreamKey = "the-key-of-the-upstream-nobody-may-read-9f2c";
const noticeTries = 3;
const noticePauseMs = 300;

export interface TakenJob {
  readonly id: string;
  readonly n: number;
  readonly fate: Fate;
  /** The path that its notice goes to, which names the meter and the admission. */
  readonly hook: string;
  readonly endsAt: number;
  cancelled: boolean;
}

export class HostileUpstream {
  readonly jobs = new Map<string, TakenJob>();
  /** How often each fault was done. */
  readonly done = new Map<string, number>();
  readonly #seed: number;
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy());
  });
  /** Where notices go: the gateway keeps its port through every restart. */
  gateway = "";
  calm = false;
  #url = "";

  constructor(seed: number) {
    this.#seed = seed;
  }

  async listen(): Promise<this> {
    this.#url = await listenLocally(this.#server);
    return this;
  }

  get url(): string {
    return this.#url;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, , , operation, id] = new URL(request.url ?? "/", this.url).pathname.split("/");
    const text = await read(request);
    if (request.headers.authorization !== `Bearer ${upstreamKey}`) return send(response, 401, { error: "no" });
    if (operation === "run" || operation === "runsync") return this.#submit(response, operation, text);
    const job = this.jobs.get(id ?? "");
    if (!job) return send(response, 404, { error: "job not found" });
    if (operation === "cancel" && Date.now() < job.endsAt) job.cancelled = true;
    if (!this.calm && Math.random() < 0.05) return void response.destroy();
    send(response, 200, describe(job));
  }

  async #submit(response: ServerResponse, operation: string, text: string): Promise<void> {
    const { input, webhook = "" } = JSON.parse(text) as { input: { n: number }; webhook?: string };
    const fate = fateOf(this.#seed, input.n);
    this.done.set(fate.fault, (this.done.get(fate.fault) ?? 0) + 1);
    if (fate.fault === "refuses") return send(response, 400, { error: "not like this" });
    if (fate.fault === "busy") return send(response, 429, { error: "too many" });
    if (fate.fault === "resets-early") return void response.destroy();
    const id = `job-${input.n}-${this.jobs.size}`;
    const hook = webhook === "" ? "" : new URL(webhook).pathname;
    const job = { id, n: input.n, fate, hook, endsAt: Date.now() + fate.runsMs, cancelled: false };
    this.jobs.set(id, job);
    setTimeout(() => void this.#notify(job), fate.runsMs + 5);
    if (operation === "runsync") await pause(fate.runsMs);
    await breakAnswer(response, fate, describe(job));
  }

  async #notify(job: TakenJob): Promise<void> {
    if (job.fate.noticeFault) return;
    for (let tries = 0; tries < noticeTries; tries++) {
      const body = JSON.stringify({ ...describe(job), input: {} });
      const response = await fetch(this.gateway + job.hook, { method: "POST", body }).catch(() => undefined);
      await response?.arrayBuffer().catch(() => undefined);
      if (response?.ok) return;
      await pause(noticePauseMs);
    }
  }
}

/** What is true of the job at this moment. */
export function describe(job: TakenJob): { id: string; status: string; output?: { cost: number } } {
  const { id, fate } = job;
  if (job.cancelled) return { id, status: "CANCELLED" };
  if (Date.now() < job.endsAt) return { id, status: "IN_PROGRESS" };
  if (fate.ends === "FAILED") return { id, status: "FAILED" };
  return { id, status: "COMPLETED", output: { cost: fate.costMicroUsd / 1e6 } };
}

export function trueCost(job: TakenJob): number {
  return job.cancelled || job.fate.ends === "FAILED" ? 0 : job.fate.costMicroUsd;
}

async function breakAnswer(response: ServerResponse, { fault }: Fate, answer: object): Promise<void> {
  const text = JSON.stringify(answer);
  const json = { "Content-Type": "application/json" };
  switch (fault) {
    case "resets-late":
      return void response.destroy();
    case "half-json":
      return void response.writeHead(200, json).end(text.slice(0, -9));
    case "html":
      return void response.writeHead(200, { "Content-Type": "text/html" }).end("<h1>It works</h1>");
    case "fails":
      return void response.writeHead(500, json).end('{"error":"out of memory"}');
    case "cuts-short":
      response.writeHead(200, { ...json, "Content-Length": text.length + 100 }).write(text);
      await pause(20);
      return void response.destroy();
    case "says-the-key":
      response.writeHead(200, { ...json, "X-Debug": upstreamKey, "Set-Cookie": `key=${upstreamKey}` });
      return void response.end(JSON.stringify({ ...answer, note: upstreamKey }));
    case "drips":
      response.writeHead(200, { ...json, "Content-Length": text.length });
      for (const character of text) {
        response.write(character);
        await pause(2);
      }
      return void response.end();
    default:
      return send(response, 200, answer);
  }
}

function send(response: ServerResponse, status: number, answer: object): void {
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(answer));
}

async function read(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
