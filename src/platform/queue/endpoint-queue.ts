// One endpoint's queue as a Durable Object: calls come in, held ones wait, one alarm does all that time does.
import { DurableObject } from "cloudflare:workers";
import type { Health } from "../../contract/job.ts";
import type { RatedOperation } from "../../contract/rates.ts";
import { isFinal, type JobState } from "../../contract/states.ts";
import { migrate } from "../../wire/migrate.ts";
import { OneAlarm } from "../../wire/one-alarm.ts";
import { remote } from "../../wire/remote.ts";
import type { builtInRunner } from "../workers/built-in.ts";
import { defaultEndpointSettings, type EndpointSettings, readSettings, writeSettings } from "./endpoint-settings.ts";
import type { ExecutedRow } from "./executed.ts";
import { Gate } from "./gate.ts";
import { HeldCalls } from "./held-calls.ts";
import { describeJob, type JobRow } from "./job.ts";
import { Courier } from "./notices.ts";
import { bodyOf } from "./payloads.ts";
import { Queue, type Submission } from "./queue.ts";
import { steps } from "./schema.ts";
import {
  type Body,
  type JobView,
  noEndpoint,
  noJob,
  notHeld,
  type Refusal,
  type TakenJob,
  tooManyWorkers,
} from "./views.ts";
import { type Outcome, WorkerDesk } from "./worker-desk.ts";

type Waiting = "runsync" | "status" | "openai";
type Streaming = "stream" | "openai";
export type Part = { status: JobState; items: string[] };

export class EndpointQueue extends DurableObject<Env> {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  readonly #queue: Queue;
  readonly #desk: WorkerDesk;
  readonly #gate: Gate;
  readonly #courier: Courier;
  readonly #held = new HeldCalls();
  readonly #alarm: OneAlarm;

  /** Without built-in workers only real ones serve the endpoint. */
  constructor(ctx: DurableObjectState, env: Env, runner?: typeof builtInRunner) {
    super(ctx, env);
    migrate(ctx.storage, steps);
    this.#alarm = new OneAlarm(ctx, "endpoint-queue", () => this.#ring());
    const now = () => this.clock();
    const settled = () => this.#arm();
    const waitUntil = (promise: Promise<unknown>) => ctx.waitUntil(promise);
    const runBuiltIn = runner?.(ctx, env, { queue: () => this.#queue, desk: () => this.#desk, settled });
    this.#queue = new Queue(ctx.storage, readSettings(ctx.storage.sql), { now, runBuiltIn });
    this.#desk = new WorkerDesk(this.#queue, now);
    this.#gate = new Gate(this.#queue, now);
    this.#courier = new Courier({ store: this.#queue.store, exports: ctx.exports, now, waitUntil, settled });
    this.#arm();
  }

  /** Sent again with the same id, it is the same job: an answer may be lost when the object restarts. */
  submit(
    submission: Submission,
    operation: RatedOperation = submission.sync ? "runsync" : "run",
  ): { id: string } | Refusal {
    const { id, body } = submission;
    if (this.#queue.store.find(id)) return { id };
    const refusal = body instanceof Uint8Array ? this.#gate.refuse(operation, body.byteLength) : undefined;
    if (refusal) return refusal;
    const accepted = this.#queue.submit(submission);
    this.#arm();
    return accepted ? { id } : { refused: "INVALID_REQUEST", detail: "the upload took too long" };
  }

  /** A body too large for one call, stored as it flows; `submit` or `finish` then names it. Nothing of one that broke off. */
  async upload(operation: "run" | "runsync" | "done", body: ReadableStream<Uint8Array>) {
    const rated = operation === "done" ? undefined : operation;
    const refusal = rated && this.#gate.refuse(rated, 0);
    if (refusal) {
      await body.cancel();
      return refusal;
    }
    const leave = rated ? this.#gate.enter(rated) : () => {};
    const upload = this.#queue.store.newPayloadKey();
    try {
      const stored = this.#queue.store.payloads.upload(upload, body, this.clock());
      this.#arm();
      const size = await stored;
      if (size !== undefined) return { upload, size };
      this.discard(upload);
      return undefined;
    } catch (error) {
      this.discard(upload);
      throw error;
    } finally {
      leave();
      this.#arm();
    }
  }

  discard(upload: number): void {
    this.#queue.store.payloads.remove(upload);
  }

  status(id: string, ttlMs: number | null): JobView | Refusal {
    return this.#rated("status", () => {
      const job = this.#queue.find(id);
      if (job && ttlMs !== null) this.#queue.setTtl(job, ttlMs);
      return this.#view(id);
    });
  }

  /** Holds until the job is at its end or the time is over. Who submitted it was let in then. */
  async wait(id: string, waitMs: number, ticket: string, operation: Waiting): Promise<JobView | Refusal> {
    const refusal = operation === "status" ? this.#gate.refuse(operation) : undefined;
    if (refusal) return refusal;
    const leave = this.#gate.enter(operation);
    try {
      await this.#hold(id, waitMs, ticket, (job) => isFinal(job.status));
      return this.#view(id);
    } finally {
      leave();
    }
  }

  /** Holds until there is a chunk, the end, or the time is over; hands each chunk out once. */
  async stream(id: string, waitMs: number, ticket: string, operation: Streaming = "stream"): Promise<Part | Refusal> {
    const refusal = operation === "stream" ? this.#gate.refuse(operation) : undefined;
    if (refusal) return refusal;
    const leave = this.#gate.enter(operation);
    const { store } = this.#queue;
    try {
      await this.#hold(id, waitMs, ticket, (job) => isFinal(job.status) || !store.chunks.isEmpty(job.key));
      const job = this.#queue.find(id);
      if (!job) return noJob;
      const items = store.transaction(() => store.drain(job));
      // Clients stop asking at a final status, so it waits for the last chunk.
      return { status: store.chunks.isEmpty(job.key) ? job.status : "IN_PROGRESS", items };
    } finally {
      leave();
    }
  }

  async #hold(id: string, waitMs: number, ticket: string, isOver: (job: JobRow) => boolean): Promise<void> {
    const over = () => {
      const job = this.#queue.find(id);
      return !job || isOver(job);
    };
    if (over()) return;
    await this.#held.hold(ticket, waitMs, (wake) => this.#queue.listeners.listen(id, () => over() && wake()));
  }

  cancel(id: string): { id: string; status: JobState } | Refusal {
    return this.#rated("cancel", () => {
      const job = this.#queue.find(id);
      return job ? { id, status: this.#queue.cancel(job) } : noJob;
    });
  }

  retry(id: string): { id: string; status: JobState } | Refusal {
    const job = this.#queue.find(id);
    if (!job) return noJob;
    const detail = `only a FAILED or TIMED_OUT job can be retried, this one is ${job.status}`;
    if (!this.#queue.retry(job)) return { refused: "NOT_RETRYABLE", detail };
    this.#arm();
    return { id, status: "IN_QUEUE" };
  }

  purge(): { removed: number } | Refusal {
    return this.#rated("purge-queue", () => ({ removed: this.#queue.purge() }));
  }

  requests(offset: number, limit: number) {
    return this.#rated("requests", () => {
      this.#queue.tick();
      const total = this.#queue.store.totals.jobs;
      const requests = this.#queue.store.page(offset, limit).map((job) => describeJob(job, this.clock()));
      return { requests, total, offset, limit, hasMore: offset + requests.length < total };
    });
  }

  health(): Health | Refusal {
    return this.#queue.settings.closed ? noEndpoint : this.#queue.health();
  }

  metrics() {
    if (this.#queue.settings.closed) return noEndpoint;
    return { workers: this.#queue.health().workers, readyWorkers: this.#queue.readyWorkers() };
  }

  /** Holds until there is a job. Whoever leaves meanwhile says so by its ticket, or gives the jobs back. */
  async take(worker: string, ticket: string, count: number, holdMs: number): Promise<TakenJob[] | Refusal> {
    const deadline = this.clock() + holdMs;
    for (;;) {
      const refusal = this.#refuseWorker(worker);
      if (refusal) return refusal;
      this.#desk.heard(worker);
      const jobs = this.#queue.take(worker, count);
      this.#arm();
      if (jobs.length > 0) return jobs.map((job) => ({ id: job.id, request: this.#input(job) }));
      const left = deadline - this.clock();
      if (left <= 0 || !(await this.#desk.holdForJob(this.#held, ticket, worker, count, left))) return [];
    }
  }

  #refuseWorker(worker: string): Refusal | undefined {
    if (this.#queue.settings.closed) return noEndpoint;
    return this.#queue.workers.hasRoomFor(worker) ? undefined : tooManyWorkers;
  }

  /** The caller of a held operation is gone. */
  leave(ticket: string): void {
    this.#held.leave(ticket);
  }

  giveBack(worker: string, ids: readonly string[]): void {
    for (const id of ids) {
      const job = this.#queue.find(id);
      if (job) this.#desk.giveBack(job, worker);
    }
    this.#arm();
  }

  async stops(worker: string, ticket: string, holdMs: number): Promise<string[] | Refusal> {
    const refusal = this.#refuseWorker(worker);
    if (refusal) return refusal;
    this.#desk.heard(worker);
    return this.#desk.holdForStops(this.#held, ticket, worker, holdMs);
  }

  ping(worker: string, jobs: readonly string[]): { ok: true } | Refusal {
    const refusal = this.#refuseWorker(worker);
    if (refusal) return refusal;
    this.#desk.heard(worker);
    this.#desk.ping(worker, jobs);
    this.#arm();
    return { ok: true };
  }

  finish(worker: string, id: string, outcome: Outcome): { ok: true } | Refusal {
    return this.#fromWorker(id, (job) => this.#desk.finish(job, worker, outcome));
  }

  report(worker: string, id: string, progress: Outcome["output"]): { ok: true } | Refusal {
    return this.#fromWorker(id, (job) => this.#desk.report(job, worker, progress));
  }

  append(worker: string, id: string, chunk: unknown): { ok: true } | Refusal {
    return this.#gate.full(0) ?? this.#fromWorker(id, (job) => this.#desk.append(job, worker, chunk));
  }

  /** The worker asks to be restarted: until it is heard of again it is not there. */
  restart(worker: string): void {
    if (this.#queue.store.heldBy(worker).length === 0) this.#queue.workers.gone(worker);
  }

  #fromWorker(id: string, act: (job: JobRow) => boolean): { ok: true } | Refusal {
    const job = this.#queue.find(id);
    if (!job) return noJob;
    const accepted = act(job);
    this.#arm();
    return accepted ? { ok: true } : notHeld;
  }

  configure(settings: EndpointSettings): void {
    writeSettings(this.ctx.storage.sql, settings);
    this.#queue.configure(settings);
    this.#arm();
  }

  /** The endpoint is about to be deleted: nothing comes in any more, what runs ends. Answers what ran. */
  retire(): ExecutedRow[] {
    this.configure({ ...this.#queue.settings, closed: true });
    this.#queue.retire();
    return this.#queue.store.executed.all();
  }

  /** The retired endpoint is deleted: queue, results and history go for good. Only that it is closed stays known. */
  async wipe(): Promise<void> {
    await this.#alarm.stop();
    await this.ctx.storage.deleteAll();
    migrate(this.ctx.storage, steps);
    this.#queue.store.forget();
    this.configure({ ...defaultEndpointSettings, closed: true });
  }

  #view(id: string): JobView | Refusal {
    const job = this.#queue.find(id);
    if (!job) return noJob;
    const size = job.output === null ? 0 : this.#queue.store.payloads.size(job.output);
    return { head: describeJob(job, this.clock()), output: job.output === null ? null : this.#read(job.output, size) };
  }

  #input(job: JobRow): Body {
    return this.#read(job.input, this.#queue.store.payloads.size(job.input) - 1);
  }

  #read(key: number, to: number): Body {
    return bodyOf(this.#queue.store.payloads.read({ key, from: 0, to }), to);
  }

  #rated<T>(operation: RatedOperation, act: () => T): T | Refusal {
    const refusal = this.#gate.refuse(operation);
    if (refusal) return refusal;
    const result = act();
    this.#arm();
    return result;
  }

  #arm(): void {
    this.#alarm.arm(this.#queue.nextDue(), this.#courier.nextDue());
  }

  async #tellAccount(rows: readonly ExecutedRow[]): Promise<void> {
    const [account = "", endpoint = ""] = this.ctx.id.name?.split("/") ?? [];
    await remote(this.env.ACCOUNT, account).recordExecuted(endpoint, rows);
  }

  override alarm(): Promise<void> {
    return this.#alarm.ring();
  }

  async #ring(): Promise<void> {
    this.#queue.tick();
    this.#courier.send();
    await this.#queue.store.executed.report(this.clock(), (rows) => this.#tellAccount(rows));
    this.#arm();
  }
}
