// One endpoint's queue as a Durable Object: calls come in, held ones wait, one alarm does all that time does.
import { DurableObject } from "cloudflare:workers";
import type { Health } from "../../contract/job.ts";
import type { RatedOperation } from "../../contract/rates.ts";
import { isFinal, type JobState } from "../../contract/states.ts";
import type { ErrorCode } from "../../errors.ts";
import { migrate } from "../../wire/migrate.ts";
import { remote } from "../../wire/remote.ts";
import { builtInRunner } from "../workers/built-in.ts";
import { until } from "./attached-workers.ts";
import { defaultEndpointSettings, type EndpointSettings, endpointSettingsSchema } from "./endpoint-settings.ts";
import type { ExecutedRow } from "./executed.ts";
import { describeJob, type JobRow } from "./job.ts";
import { deliver } from "./notices.ts";
import { bodyOf } from "./payloads.ts";
import { type Outcome, Queue, type Submission } from "./queue.ts";
import { RateLimits } from "./rate-limits.ts";
import { steps } from "./schema.ts";

/** What the routes turn into an error. */
export interface Refusal {
  readonly refused: ErrorCode;
  readonly detail: string;
  readonly retryAfterSeconds?: number;
}
export type Body = Uint8Array | ReadableStream<Uint8Array>;
/** A job as it is answered: its head, and its output's JSON. */
export interface JobView {
  readonly head: ReturnType<typeof describeJob>;
  readonly output: Body | null;
}
export interface TakenJob {
  readonly id: string;
  /** The job request as it came, without its closing brace: whoever sends it adds the id. */
  readonly request: Body;
}

const noJob: Refusal = { refused: "JOB_NOT_FOUND", detail: "job not found" };
const noOutput: readonly Uint8Array[] = [];
/** An alarm that failed, or left work behind, comes back after this. */
const retryAlarmMs = 1000;
const noticesAtOnce = 6;

export class EndpointQueue extends DurableObject<Env> {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  #queue: Queue;
  readonly #rates = new RateLimits();
  /** Calls that wait, by their ticket. */
  readonly #held = new Map<string, () => void>();
  #armedAt: number | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    migrate(ctx.storage, steps);
    this.#queue = this.#openQueue();
    this.#arm();
  }

  #openQueue(): Queue {
    const runBuiltIn = builtInRunner(
      this.ctx,
      this.env,
      () => this.#queue,
      () => this.#arm(),
    );
    return new Queue(this.ctx.storage, this.#readSettings(), { now: () => this.clock(), runBuiltIn });
  }

  submit(submission: Submission): { id: string } | Refusal {
    const operation = submission.sync ? "runsync" : "run";
    const uploaded = !(submission.body instanceof Uint8Array);
    const refusal = uploaded ? undefined : (this.#refuse(operation) ?? this.#refuseWhenFull(submission.body));
    if (refusal) return refusal;
    if (!uploaded) this.#rates.leave(operation);
    const accepted = this.#queue.submit(submission);
    this.#arm();
    return accepted ? { id: submission.id } : { refused: "INVALID_REQUEST", detail: "the upload took too long" };
  }

  /** A body too large for one call, stored as it flows; `submit` or `finish` then names it. */
  async upload(operation: "run" | "runsync" | "done", body: ReadableStream<Uint8Array>) {
    const rated = operation === "done" ? undefined : operation;
    const refusal = (rated && this.#refuse(rated)) ?? this.#refuseWhenFull({ byteLength: 0 });
    if (refusal) {
      await body.cancel();
      return refusal;
    }
    try {
      const upload = this.#queue.store.newPayloadKey();
      const size = await this.#queue.store.payloads.upload(upload, body, this.clock());
      return { upload, size };
    } finally {
      if (rated) this.#rates.leave(rated);
      this.#arm();
    }
  }

  discard(upload: number): void {
    this.#queue.store.payloads.remove(upload);
  }

  status(id: string, ttlMs: number | null): JobView | Refusal {
    return this.#rated("status", () => {
      const job = this.#queue.store.find(id);
      if (!job) return noJob;
      if (ttlMs !== null) this.#queue.setTtl(job, ttlMs);
      return this.#view(id);
    });
  }

  /** Holds until the job is at its end or the time is over. */
  async wait(id: string, waitMs: number, ticket: string, operation: "runsync" | "status"): Promise<JobView | Refusal> {
    const refusal = operation === "status" ? this.#refuse(operation) : undefined;
    if (refusal) return refusal;
    if (operation === "runsync") this.#rates.hold(operation);
    try {
      await this.#hold(id, waitMs, ticket, (job) => isFinal(job.status));
      return this.#view(id);
    } finally {
      this.#rates.leave(operation);
    }
  }

  /** Holds until there is a chunk, the end, or the time is over; hands each chunk out once. */
  async stream(id: string, waitMs: number, ticket: string): Promise<{ status: JobState; items: string[] } | Refusal> {
    const refusal = this.#refuse("stream");
    if (refusal) return refusal;
    try {
      await this.#hold(id, waitMs, ticket, (job) => isFinal(job.status) || !this.#queue.store.chunks.isEmpty(job.key));
      const job = this.#queue.store.find(id);
      return job ? { status: job.status, items: this.#queue.store.chunks.drain(job.key) } : noJob;
    } finally {
      this.#rates.leave("stream");
    }
  }

  async #hold(id: string, waitMs: number, ticket: string, isOver: (job: JobRow) => boolean): Promise<void> {
    const over = () => {
      const job = this.#queue.store.find(id);
      return !job || isOver(job);
    };
    if (over()) return;
    let stopListening = () => {};
    await until((resolve) => {
      stopListening = this.#queue.listen(id, () => over() && resolve(true));
      this.#held.set(ticket, () => resolve(false));
    }, waitMs);
    stopListening();
    this.#held.delete(ticket);
  }

  cancel(id: string): { id: string; status: JobState } | Refusal {
    return this.#rated("cancel", () => {
      const job = this.#queue.store.find(id);
      return job ? { id, status: this.#queue.cancel(job) } : noJob;
    });
  }

  retry(id: string): { id: string; status: JobState } | Refusal {
    const job = this.#queue.store.find(id);
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
      const total = this.#queue.store.totals.jobs;
      const requests = this.#queue.store.page(offset, limit).map((job) => describeJob(job, this.clock()));
      return { requests, total, offset, limit, hasMore: offset + requests.length < total };
    });
  }

  health(): Health {
    return this.#queue.health();
  }

  metrics() {
    return { workers: this.#queue.health().workers, readyWorkers: this.#queue.readyWorkers() };
  }

  /** Holds until there is a job. Whoever leaves meanwhile says so by its ticket, or gives the jobs back. */
  async take(worker: string, ticket: string, count: number, holdMs: number): Promise<TakenJob[]> {
    const deadline = this.clock() + holdMs;
    this.#queue.workers.heard(worker, this.clock());
    for (;;) {
      const jobs = this.#queue.take(worker, count);
      this.#queue.workers.heard(worker, this.clock());
      this.#arm();
      if (jobs.length > 0) return jobs.map((job) => ({ id: job.id, request: this.#input(job) }));
      const left = deadline - this.clock();
      if (left <= 0 || !(await this.#queue.workers.waitForJob(ticket, worker, count, left))) return [];
    }
  }

  /** The caller of a held operation is gone. */
  leave(ticket: string): void {
    this.#held.get(ticket)?.();
    this.#queue.workers.leave(ticket);
  }

  giveBack(worker: string, ids: readonly string[]): void {
    for (const id of ids) {
      const job = this.#queue.store.find(id);
      if (job) this.#queue.giveBack(job, worker);
    }
    this.#arm();
  }

  stops(worker: string, holdMs: number): Promise<string[]> {
    this.#queue.workers.heard(worker, this.clock());
    return this.#queue.workers.stops(worker, holdMs, this.clock());
  }

  ping(worker: string, jobs: readonly string[]): void {
    this.#queue.workers.heard(worker, this.clock());
    this.#queue.workers.disown(worker, jobs, this.clock());
    this.#arm();
  }

  finish(worker: string, id: string, outcome: Outcome): { ok: true } | Refusal {
    return this.#fromWorker(worker, id, (job) => this.#queue.finish(job, worker, outcome));
  }

  report(worker: string, id: string, progress: Outcome["output"]): { ok: true } | Refusal {
    return this.#fromWorker(worker, id, (job) => this.#queue.report(job, worker, progress));
  }

  append(worker: string, id: string, chunk: unknown): { ok: true } | Refusal {
    return this.#fromWorker(worker, id, (job) => this.#queue.append(job, worker, chunk));
  }

  /** The worker asks to be restarted: until it is heard of again it is not there. */
  restart(worker: string): void {
    if (this.#queue.store.heldBy(worker).length === 0) this.#queue.workers.gone(worker);
  }

  #fromWorker(worker: string, id: string, act: (job: JobRow) => boolean): { ok: true } | Refusal {
    this.#queue.workers.heard(worker, this.clock());
    const job = this.#queue.store.find(id);
    if (!job) return noJob;
    const accepted = act(job);
    this.#arm();
    return accepted ? { ok: true } : { refused: "JOB_NOT_HELD", detail: "this worker does not hold the job" };
  }

  configure(settings: EndpointSettings): void {
    const json = JSON.stringify(settings);
    this.ctx.storage.sql.exec("INSERT OR REPLACE INTO settings (id, json) VALUES (1, ?)", json);
    this.#queue.configure(settings);
    this.#arm();
  }

  /** The endpoint is about to be deleted: nothing comes in any more, what runs ends, and its account hears what ran. */
  retire(): ExecutedRow[] {
    this.configure({ ...this.#queue.settings, closed: true });
    this.#queue.retire();
    return this.#queue.store.executed.all();
  }

  /** The endpoint is deleted: queue, results and history go for good. Only that it is gone stays known. */
  async wipe(): Promise<void> {
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
    this.#armedAt = undefined;
    migrate(this.ctx.storage, steps);
    this.#queue = this.#openQueue();
    this.configure({ ...defaultEndpointSettings, closed: true });
    for (const release of this.#held.values()) release();
  }

  #readSettings(): EndpointSettings {
    const row = this.ctx.storage.sql.exec<{ json: string }>("SELECT json FROM settings").toArray()[0];
    return row ? endpointSettingsSchema.parse(JSON.parse(row.json)) : defaultEndpointSettings;
  }

  #view(id: string): JobView | Refusal {
    const job = this.#queue.store.find(id);
    if (!job) return noJob;
    return { head: describeJob(job, this.clock()), output: this.#output(job.output) };
  }

  #output(key: number | null): Body | null {
    if (key === null) return null;
    const size = this.#queue.store.payloads.size(key);
    return bodyOf(size === 0 ? noOutput : this.#queue.store.payloads.read({ key, from: 0, to: size }), size);
  }

  #input(job: JobRow): Body {
    const open = this.#queue.store.payloads.size(job.input) - 1;
    return bodyOf(this.#queue.store.payloads.read({ key: job.input, from: 0, to: open }), open);
  }

  #rated<T>(operation: RatedOperation, act: () => T): T | Refusal {
    const refusal = this.#refuse(operation);
    if (refusal) return refusal;
    this.#rates.leave(operation);
    const result = act();
    this.#arm();
    return result;
  }

  #refuse(operation: RatedOperation): Refusal | undefined {
    const { requestsPerWorker, closed } = this.#queue.settings;
    if (closed) return { refused: "ENDPOINT_NOT_FOUND", detail: "endpoint not found" };
    const verdict = this.#rates.enter(operation, this.#queue.runningWorkers(), requestsPerWorker, this.clock());
    if (verdict.allowed) return undefined;
    const { detail, retryAfterSeconds } = verdict;
    return { refused: "RATE_LIMITED", detail: `${operation}: ${detail}`, retryAfterSeconds };
  }

  #refuseWhenFull({ byteLength }: { byteLength: number }): Refusal | undefined {
    if (!this.#queue.isFull(byteLength)) return undefined;
    return { refused: "QUEUE_FULL", detail: "the queue of this endpoint is full", retryAfterSeconds: 10 };
  }

  /** The alarm rings when the first timer does, or earlier: it is always recomputed from what is stored. */
  #arm(): void {
    const next = this.#queue.nextDue();
    if (next === undefined || (this.#armedAt !== undefined && this.#armedAt <= next)) return;
    this.#armedAt = next;
    this.ctx.waitUntil(this.ctx.storage.setAlarm(next));
  }

  /** Never throws: the runtime would give up on it after a few tries, and every timer with it. */
  override async alarm(): Promise<void> {
    this.#armedAt = undefined;
    try {
      const more = this.#queue.tick();
      this.#sendNotices();
      await this.#tellExecuted();
      this.#arm();
      if (more) await this.ctx.storage.setAlarm(this.clock());
    } catch (error) {
      console.error(
        JSON.stringify({ alarm: "endpoint-queue", error: error instanceof Error ? error.name : "unknown" }),
      );
      await this.ctx.storage.setAlarm(Date.now() + retryAlarmMs);
    }
  }

  /** What ran is told as sums, so that a report that comes twice counts once. */
  async #tellExecuted(): Promise<void> {
    const { executed } = this.#queue.store;
    const rows = executed.untold(this.clock());
    const [account, endpoint] = this.ctx.id.name?.split("/") ?? [];
    if (rows.length === 0 || account === undefined || endpoint === undefined) return;
    try {
      await remote(this.env.ACCOUNT, account).recordExecuted(endpoint, rows);
      executed.told(rows);
    } catch {
      executed.postpone(this.clock());
    }
  }

  #sendNotices(): void {
    const { store } = this.#queue;
    const due = store.transaction(() => store.outbox.claim(this.clock(), noticesAtOnce));
    for (const notice of due) {
      const sent = deliver(notice, store.payloads, this.ctx.exports).then((received) => {
        const over = store.transaction(() => store.outbox.settle(notice, received, this.clock()));
        if (over) this.#releaseOf(notice);
        this.#arm();
      });
      this.ctx.waitUntil(sent);
    }
  }

  #releaseOf({ job, input, output }: { job: number; input: number; output: number | null }): void {
    this.#queue.store.transaction(() => {
      this.#queue.store.release(job, input);
      this.#queue.store.release(job, output);
    });
  }
}
