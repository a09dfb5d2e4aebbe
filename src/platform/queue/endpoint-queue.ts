// One endpoint's queue as a Durable Object: calls come in, held ones wait, one alarm does all that time does.

import type { Health } from "../../contract/job.ts";
import type { RatedOperation } from "../../contract/rates.ts";
import { isFinal, type JobState } from "../../contract/states.ts";
import { BesideAlarm, besideRing } from "../../durable/beside-alarm.ts";
import { CheckedObject } from "../../durable/checked-object.ts";
import { migrate } from "../../durable/migrate.ts";
import { OneAlarm } from "../../durable/one-alarm.ts";
import { answersWithinMs, remote } from "../../durable/remote.ts";
import { defaultEndpointSettings, type EndpointSettings, readSettings, writeSettings } from "./endpoint-settings.ts";
import type { ExecutedRow } from "./executed.ts";
import { HeldCalls } from "./held-calls.ts";
import { describeJob, type JobRow } from "./job.ts";
import { viewOf } from "./job-view.ts";
import { NoticeSender } from "./notice-sender.ts";
import type { FindPublicModel } from "./public-model.ts";
import { Queue } from "./queue.ts";
import type {
  CancelOperation,
  JobOutcome,
  JobPage,
  QueueCalls,
  StreamOperation,
  StreamPart,
  Submission,
  UploadOperation,
  WaitOperation,
} from "./queue-calls.ts";
import { QueueLimits } from "./queue-limits.ts";
import { readQueueName } from "./queue-name.ts";
import { steps } from "./schema.ts";
import { type JobView, noEndpoint, noJob, queueFull, type Refusal, type TakenJob } from "./views.ts";
import { WorkerCalls } from "./worker-calls.ts";

export class EndpointQueue extends CheckedObject implements QueueCalls {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  readonly #queue: Queue;
  readonly #workers: WorkerCalls;
  readonly #limits: QueueLimits;
  readonly #sender: NoticeSender;
  readonly #held = new HeldCalls();
  readonly #alarm: OneAlarm;
  readonly #telling = new BesideAlarm("endpoint-queue", 1, () => this.#arm());

  /** Without built-in workers only real ones serve the endpoint. */
  constructor(ctx: DurableObjectState, env: Env, findModel?: FindPublicModel) {
    super(ctx, env);
    migrate(ctx.storage, steps);
    this.#alarm = new OneAlarm(ctx, "endpoint-queue", () => this.#ring());
    const now = () => this.clock();
    const settled = () => this.#arm();
    const waitUntil = (promise: Promise<unknown>) => ctx.waitUntil(promise);
    const model = findModel?.(ctx, env, { queue: () => this.#queue, workers: () => this.#workers });
    this.#queue = new Queue(ctx.storage, readSettings(ctx.storage.sql), { now, runBuiltIn: model?.run });
    this.#limits = new QueueLimits(this.#queue, now);
    this.#workers = new WorkerCalls({ queue: this.#queue, model, held: this.#held, now, changed: settled });
    this.#sender = new NoticeSender({ store: this.#queue.store, exports: ctx.exports, now, waitUntil, settled });
    this.#arm();
  }

  /** The same id twice is the same job: the caller repeats a call whose answer was lost in a restart. */
  submit(
    submission: Submission,
    operation: RatedOperation = submission.sync ? "runsync" : "run",
  ): { id: string } | Refusal {
    const { id, body } = submission;
    if (this.#queue.store.find(id)) return { id };
    if (this.#queue.settings.closed) return noEndpoint;
    const refusal = body instanceof Uint8Array ? this.#limits.refuse(operation, body.byteLength) : undefined;
    if (refusal) return refusal;
    const accepted = this.#queue.submit(submission);
    if (accepted && submission.sync) this.#limits.begin(operation, id);
    this.#arm();
    return accepted ? { id } : { refused: "INVALID_REQUEST", detail: "the upload took too long" };
  }

  /** Stores a body too large for one call as it flows; `submit` or `finish` then names it. Undefined if it broke off. */
  async upload(operation: UploadOperation, body: ReadableStream<Uint8Array>) {
    const rated = operation === "done" ? undefined : operation;
    const refusal = rated && this.#limits.refuse(rated, 0);
    if (refusal) {
      await body.cancel();
      return refusal;
    }
    const leave = rated ? this.#limits.enter(rated) : () => {};
    const upload = this.#queue.store.newPayloadKey();
    let hasRoom = true;
    try {
      const fits = (bytes: number) => (hasRoom = this.#queue.room.has(bytes, rated === undefined));
      const stored = this.#queue.store.payloads.upload(upload, body, this.clock(), fits);
      this.#arm();
      const size = await stored;
      if (size !== undefined) return { upload, size };
      this.discard(upload);
      return hasRoom ? undefined : queueFull;
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

  /** Holds until the job ends or the time is over. A `runsync` or `openai` call was counted when it was submitted. */
  async wait(id: string, waitMs: number, ticket: string, operation: WaitOperation): Promise<JobView | Refusal> {
    const refusal = operation === "status" ? this.#limits.refuse(operation) : undefined;
    if (refusal) return refusal;
    const leave = this.#limits.enter(operation, id);
    try {
      await this.#hold(id, waitMs, ticket, (job) => isFinal(job.status));
      return this.#view(id);
    } finally {
      leave();
    }
  }

  /** Holds until there is a chunk, the job ends, or the time is over. Hands each chunk out once. */
  async stream(
    id: string,
    waitMs: number,
    ticket: string,
    operation: StreamOperation = "stream",
  ): Promise<StreamPart | Refusal> {
    const refusal = operation === "stream" ? this.#limits.refuse(operation) : undefined;
    if (refusal) return refusal;
    const leave = this.#limits.enter(operation, id);
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

  /** The client of an `openai` call has left: what it began is ended, however much others have cancelled. */
  cancel(id: string, operation: CancelOperation = "cancel"): { id: string; status: JobState } | Refusal {
    return this.#rated(operation === "cancel" ? operation : undefined, () => {
      const job = this.#queue.find(id);
      return job ? { id, status: this.#queue.cancel(job) } : noJob;
    });
  }

  retry(id: string): { id: string; status: JobState } | Refusal {
    if (this.#queue.settings.closed) return noEndpoint;
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

  requests(offset: number, limit: number): JobPage | Refusal {
    return this.#rated("requests", () => {
      this.#queue.tick();
      const total = this.#queue.store.totals.jobs;
      const requests = this.#queue.store.page(offset, limit).map((job) => describeJob(job, this.clock()));
      return { requests, total, offset, limit, hasMore: offset + requests.length < total };
    });
  }

  health(): Health | Refusal {
    return this.#queue.settings.closed ? noEndpoint : this.#queue.report.health();
  }

  metrics() {
    if (this.#queue.settings.closed) return noEndpoint;
    return { workers: this.#queue.report.health().workers, readyWorkers: this.#queue.report.readyWorkers() };
  }

  /** Ends a held call whose caller is gone. */
  leave(ticket: string): void {
    this.#held.leave(ticket);
  }

  take(worker: string, ticket: string, count: number, holdMs: number): Promise<TakenJob[] | Refusal> {
    return this.#workers.take(worker, ticket, count, holdMs);
  }

  giveBack(worker: string, ids: readonly string[]): void {
    this.#workers.giveBack(worker, ids);
  }

  stops(worker: string, ticket: string, holdMs: number): Promise<string[] | Refusal> {
    return this.#workers.stops(worker, ticket, holdMs);
  }

  ping(worker: string, jobs: readonly string[]): { ok: true } | Refusal {
    return this.#workers.ping(worker, jobs);
  }

  finish(worker: string, id: string, outcome: JobOutcome): { ok: true } | Refusal {
    return this.#workers.finish(worker, id, outcome);
  }

  report(worker: string, id: string, progress: JobOutcome["output"]): { ok: true } | Refusal {
    return this.#workers.report(worker, id, progress);
  }

  append(worker: string, id: string, chunk: unknown): { ok: true } | Refusal {
    return this.#queue.room.has(0) ? this.#workers.append(worker, id, chunk) : queueFull;
  }

  restart(worker: string): void {
    this.#workers.restart(worker);
  }

  configure(settings: EndpointSettings): void {
    writeSettings(this.ctx.storage.sql, settings);
    this.#queue.configure(settings);
    this.#arm();
  }

  /** The endpoint is about to be deleted: takes no more jobs and cancels those that run. Answers what ran and was not told. */
  retire(): ExecutedRow[] {
    this.configure({ ...this.#queue.settings, closed: true });
    this.#queue.retire();
    return this.#queue.store.executed.untold();
  }

  /** Deletes queue, results and history of a retired endpoint. Only that it is closed stays known. */
  async wipe(): Promise<void> {
    await this.#alarm.stop();
    await this.ctx.storage.deleteAll();
    migrate(this.ctx.storage, steps);
    this.#queue.store.forget();
    this.configure({ ...defaultEndpointSettings, closed: true });
  }

  #view(id: string): JobView | Refusal {
    const job = this.#queue.find(id);
    return job ? viewOf(job, this.#queue.store.payloads, this.clock()) : noJob;
  }

  /** Without an operation it is not counted. */
  #rated<T>(operation: RatedOperation | undefined, act: () => T): T | Refusal {
    const refusal = operation && this.#limits.refuse(operation);
    if (refusal) return refusal;
    const result = act();
    this.#arm();
    return result;
  }

  #arm(): void {
    this.#alarm.arm(this.#queue.nextDue(), this.#sender.nextDue());
  }

  async #tellAccount(rows: readonly ExecutedRow[]): Promise<void> {
    const { account, endpoint } = readQueueName(this.ctx.id.name);
    await remote(this.env.ACCOUNT, account, answersWithinMs.asked).recordExecuted(endpoint, rows);
  }

  override alarm(): Promise<void> {
    return this.#alarm.ring();
  }

  async #ring(): Promise<void> {
    this.#queue.tick();
    this.#sender.send();
    const told = this.#queue.store.executed.report(this.clock(), (rows) => this.#tellAccount(rows));
    await besideRing(this.ctx, [this.#telling.begin(told)]);
    this.#arm();
  }
}
