// A model service at its worst: it takes jobs and breaks its answers, as each request's fate has it, and is away for a while
// now and then. It forgets no job until it is told to forget all.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { freePort } from "../support/serve-locally.ts";
import { breakAnswer, refuseBefore, send, withKey } from "./broken-answers.ts";
import { type Fate, fateOf, firstPicture } from "./chance.ts";
import { history } from "./history.ts";
import { answerChat } from "./hostile-chat.ts";
import { sendPicture } from "./hostile-media.ts";
import { upstreamKey } from "./key-watch.ts";
import { listenAgain } from "./listen.ts";
import { pause, readBytes } from "./pace.ts";
import { TakenJob } from "./taken-job.ts";

const noticeTries = 4;
const noticePauseMs = 300;

export class HostileUpstream {
  readonly jobs = new Map<string, TakenJob>();
  /** By a chat's number, whether its usage was said to the end. */
  readonly chats = new Map<number, boolean>();
  /** How often each fault was done. */
  readonly done = new Map<string, number>();
  /** What should never have come here. */
  readonly faults: string[] = [];
  /** Where notices go: the gateway keeps its port through every restart. */
  gateway = "";
  calm = false;
  forgets = false;
  seed: number;
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy());
  });
  #port = 0;

  constructor(seed: number) {
    this.seed = seed;
  }

  async listen(): Promise<this> {
    this.#port ||= await freePort();
    await listenAgain(this.#server, this.#port);
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** It refuses every connection, and what was open breaks. It listens again at the same address. */
  async close(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, first, model = "", operation, id = ""] = new URL(request.url ?? "/", this.url).pathname.split("/");
    if (first === "media") return sendPicture(response, this.seed, Number.parseInt(model, 10), this.calm);
    const text = (await readBytes(request)).toString();
    if (request.headers.authorization !== `Bearer ${upstreamKey}`) return send(response, 401, { error: "no" });
    if (operation === "health") return send(response, 200, { jobs: { inQueue: 0 }, workers: { idle: 1 } });
    if (operation === "openai") return this.#chat(response, text);
    if (operation === "run" || operation === "runsync") return this.#submit(response, model, operation, text);
    const job = this.forgets ? undefined : this.jobs.get(id);
    if (!job) return send(response, 404, { error: "job not found" });
    return this.#follow(response, job, operation ?? "");
  }

  async #submit(response: ServerResponse, model: string, operation: string, text: string): Promise<void> {
    const { input, webhook = "" } = JSON.parse(text) as Submission;
    const n = numberOf(input);
    const fate = fateOf(this.seed, n);
    const mustNotCome = fate.scenario === "large body" && cutOf(fate) !== "whole";
    if (mustNotCome) this.faults.push(`all of a body came that was ${cutOf(fate)}: ${n}`);
    this.done.set(fate.fault, (this.done.get(fate.fault) ?? 0) + 1);
    if (refuseBefore(response, fate.fault)) return;
    const id = `job-${n}-${this.jobs.size}`;
    const hook = webhook === "" ? "" : new URL(webhook).pathname;
    const job = new TakenJob(this.seed, { id, n, model, hook, mediaOrigin: this.url });
    this.jobs.set(id, job);
    history.note(`upstream: took ${id} (${fate.fault}), its hook is ${hook}, ${tellRun(job)}`);
    this.#notifyAtEnd(job);
    if (operation === "runsync") await pause(job.last.runsMs);
    await breakAnswer(response, fate.fault, job.describe(), n);
  }

  async #follow(response: ServerResponse, job: TakenJob, operation: string): Promise<void> {
    const draw = job.drawLook();
    history.note(`upstream: ${operation} of ${job.id}, which is ${job.status}, draws ${draw.toFixed(3)}`);
    if (!this.calm && draw < 0.04) return void response.destroy();
    if (operation === "cancel") job.cancel();
    if (operation === "retry") return this.#retry(response, job, draw);
    const answer = operation === "stream" ? job.stream() : job.describe();
    send(response, 200, !this.calm && draw < 0.07 ? withKey(answer, job.n) : answer);
  }

  async #retry(response: ServerResponse, job: TakenJob, draw: number): Promise<void> {
    if (!job.retry()) return send(response, 400, { error: "not retryable" });
    this.#notifyAtEnd(job);
    const isLost = !this.calm && draw < 0.1;
    history.note(`upstream: runs ${job.id} again, ${tellRun(job)}${isLost ? ", and its answer is lost" : ""}`);
    await breakAnswer(
      response,
      isLost ? "resets-late" : "none",
      JSON.stringify({ id: job.id, status: "IN_QUEUE" }),
      job.n,
    );
  }

  async #chat(response: ServerResponse, text: string): Promise<void> {
    const { seed: n, stream = false } = JSON.parse(text) as { seed: number; stream?: boolean };
    const { fault } = fateOf(this.seed, n);
    if (refuseBefore(response, fault)) return;
    // Whatever part of it is said may have been all that counts.
    this.chats.set(n, true);
    if (!(await answerChat(response, this.seed, n, stream))) this.chats.set(n, false);
  }

  #notifyAtEnd(job: TakenJob): void {
    setTimeout(() => void this.#notify(job).catch(() => {}), job.last.runsMs + 5);
  }

  async #notify(job: TakenJob): Promise<void> {
    const { notice } = job.fate;
    if (notice === "is lost" || job.hook === "") return;
    for (let tries = 0; tries < noticeTries; tries++) {
      const told = job.describe();
      const body = notice === "says the key" && tries === 0 ? withKey(told, job.n) : told;
      const response = await fetch(this.gateway + job.hook, { method: "POST", body }).catch(() => undefined);
      await response?.arrayBuffer().catch(() => undefined);
      history.note(`upstream: its notice of ${told} was answered with ${response?.status}`);
      if (response?.ok) return;
      await pause(noticePauseMs);
    }
  }
}

function tellRun({ last: { runsMs, ends, saysCost, costMicroUsd } }: TakenJob): string {
  return `${ends} in ${runsMs} ms at ${saysCost ? costMicroUsd : "no said cost"}`;
}

interface Submission {
  readonly input: {
    readonly n?: number;
    readonly seed?: number;
    readonly sampling_params?: { readonly seed?: number };
  };
  readonly webhook?: string;
}

function numberOf({ n, seed, sampling_params }: Submission["input"]): number {
  if (n !== undefined) return n;
  return seed === undefined ? (sampling_params?.seed ?? 0) : firstPicture + seed;
}

const cuts = ["whole", "broken off", "over the limit"] as const;

/** How much of a large body its client sends. */
export function cutOf({ variant }: Fate): (typeof cuts)[number] {
  return cuts[variant % cuts.length] as (typeof cuts)[number];
}
