// The queue's rules at work: every call is one synchronous turn over storage, so it happens whole or not at all.
import type { Health } from "../../contract/job.ts";
import { isFinal, type JobState } from "../../contract/states.ts";
import { AttachedWorkers } from "./attached-workers.ts";
import type { EndpointSettings } from "./endpoint-settings.ts";
import { Fleet, isBuiltIn } from "./fleet.ts";
import { abandonedError, type JobEvent, type JobRow, nextTimer, overranError, retentionMs } from "./job.ts";
import { type Change, JobStore } from "./job-store.ts";
import { workersWanted } from "./scaling.ts";

export const queueBounds = { jobs: 250_000, bytes: 4 * 1024 ** 3 } as const;

/** How many overdue jobs one alarm handles before it makes room for calls. */
const tickSize = 500;
const purgeBatch = 1000;

export interface Submission {
  readonly id: string;
  readonly sync: boolean;
  readonly waitMs: number;
  readonly lowPriority: boolean;
  readonly ttlMs: number;
  readonly executionTimeoutMs: number | null;
  readonly webhook: string | null;
  readonly origin: string;
  /** The request's bytes, or the upload that holds them. */
  readonly body: Uint8Array | { readonly upload: number; readonly size: number };
  /** Where `input` lies in them. */
  readonly inputFrom: number;
  readonly inputTo: number;
}

/** What a worker reports. The output is JSON, or the upload that holds it. */
export interface Outcome {
  readonly error: string | null;
  readonly output: Uint8Array | { readonly upload: number; readonly size: number } | null;
}

export interface Surroundings {
  readonly now: () => number;
  /** Runs the job; undefined where the endpoint has no built-in workers. */
  readonly runBuiltIn: ((job: JobRow, worker: string, signal: AbortSignal) => void) | undefined;
}

export class Queue {
  readonly store: JobStore;
  readonly workers = new AttachedWorkers();
  readonly #fleet = new Fleet();
  readonly #runs = new Map<string, AbortController>();
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #around: Surroundings;
  #settings: EndpointSettings;

  constructor(storage: DurableObjectStorage, settings: EndpointSettings, around: Surroundings) {
    this.#around = around;
    this.#settings = settings;
    this.store = new JobStore(storage, settings.executionTimeoutMs);
    this.store.executed.meter = settings.managed?.meter;
    this.#recover();
  }

  /** Built-in runs died with the object that ran them; real workers get the usual time to be heard of. */
  #recover(): void {
    const now = this.#around.now();
    for (const worker of this.store.busyWorkers()) {
      for (const job of this.store.heldBy(worker)) {
        if (isBuiltIn(worker)) this.#lose(job);
        else this.workers.holds(worker, job.id, now);
      }
    }
    this.dispatch();
  }

  get settings(): EndpointSettings {
    return this.#settings;
  }

  configure(settings: EndpointSettings): void {
    this.#settings = settings;
    this.store.executionTimeoutMs = settings.executionTimeoutMs;
    this.store.executed.meter = settings.managed?.meter;
    this.dispatch();
  }

  isFull(moreBytes: number): boolean {
    const { jobs, bytes } = this.store.totals;
    return jobs >= queueBounds.jobs || bytes + moreBytes > queueBounds.bytes;
  }

  /** False where the upload that it speaks of is gone. */
  submit(submission: Submission): boolean {
    const { body, inputFrom: from, inputTo: to } = submission;
    const accepted = this.store.transaction(() => {
      const input = this.#keep(body);
      if (!input) return false;
      const { id, lowPriority, ttlMs, executionTimeoutMs, webhook, origin } = submission;
      const kept = retentionMs(submission.sync, submission.waitMs);
      const job = { id, lowPriority, ttlMs, executionTimeoutMs, webhook, origin, retentionMs: kept };
      this.store.add({ ...job, input: { ...input, from, to } }, this.#around.now());
      return true;
    });
    if (accepted) this.dispatch();
    return accepted;
  }

  #keep(body: Submission["body"]): { key: number; size: number } | undefined {
    if (body instanceof Uint8Array) {
      const key = this.store.newPayloadKey();
      this.store.payloads.put(key, body);
      return { key, size: body.byteLength };
    }
    return this.store.payloads.adopt(body.upload) ? { key: body.upload, size: body.size } : undefined;
  }

  /** The job's state; of a final job the state that it has. */
  cancel(job: JobRow): JobState {
    if (isFinal(job.status)) return job.status;
    this.apply(job, "cancelled");
    return "CANCELLED";
  }

  retry(job: JobRow): boolean {
    const moved = this.apply(job, "retried");
    if (moved) this.dispatch();
    return moved;
  }

  purge(): number {
    let removed = 0;
    for (;;) {
      const waiting = this.store.firstWaiting(purgeBatch);
      for (const job of waiting) this.apply(job, "purged");
      removed += waiting.length;
      if (waiting.length < purgeBatch) return removed;
    }
  }

  setTtl(job: JobRow, ttlMs: number): void {
    this.store.update(job, { ttlMs });
    this.tick();
  }

  /** Hands waiting jobs to whoever is there for them: real workers in line first, built-in ones where none is present. */
  dispatch(): void {
    for (let waiting = this.store.totals.waiting; waiting > 0; ) {
      const taker = this.workers.nextTaker((worker) => this.#mayTake(worker));
      if (!taker) break;
      taker.resolve(true);
      waiting -= taker.batch;
    }
    this.#startBuiltIn();
  }

  /** Jobs for a real worker, now in its hands. */
  take(worker: string, count: number): JobRow[] {
    if (!this.#mayTake(worker)) return [];
    const now = this.#around.now();
    return this.store.firstWaiting(count).flatMap((job) => {
      const moved = this.store.transaction(() => this.store.move(job, "taken", now, { worker }));
      if (!moved) return [];
      this.workers.holds(worker, job.id, now);
      return [moved.job];
    });
  }

  /** The workers of a managed endpoint are as many as its settings say: one more waits until another is done. */
  #mayTake(worker: string): boolean {
    const { managed, workersMax } = this.#settings;
    return managed === undefined || this.workers.isBusy(worker) || this.workers.busy() < workersMax;
  }

  /** Ends whatever runs or waits: the endpoint is about to be deleted. */
  retire(): void {
    this.purge();
    for (const worker of this.store.busyWorkers()) {
      for (const job of this.store.heldBy(worker)) this.apply(job, "cancelled");
    }
    this.workers.dismiss();
  }

  #startBuiltIn(): void {
    const { runBuiltIn } = this.#around;
    const now = this.#around.now();
    const { waiting, waitingLow } = this.store.totals;
    if (!runBuiltIn || waiting === 0 || this.workers.presentUntil(now) !== undefined) return;
    for (const job of this.store.firstWaiting(this.#fleet.free(waiting, waitingLow, this.#settings, now))) {
      const worker = this.#fleet.take();
      const moved = this.store.transaction(() => this.store.move(job, "taken", now, { worker }));
      if (!moved) continue;
      const run = new AbortController();
      this.#runs.set(job.id, run);
      runBuiltIn(moved.job, worker, run.signal);
    }
  }

  /** False where the worker does not hold the job: it was cancelled, timed out, or given to another. */
  finish(job: JobRow, worker: string, outcome: Outcome): boolean {
    if (job.status !== "IN_PROGRESS" || job.worker !== worker) return false;
    const reported = this.#replaceOutput(job, outcome.output);
    this.apply(reported, outcome.error === null ? "completed" : "failed", { error: outcome.error }, true);
    this.dispatch();
    return true;
  }

  report(job: JobRow, worker: string, progress: Outcome["output"]): boolean {
    if (job.status !== "IN_PROGRESS" || job.worker !== worker) return false;
    this.#replaceOutput(job, progress);
    return true;
  }

  #replaceOutput(job: JobRow, output: Outcome["output"]): JobRow {
    if (output === null) return job;
    return this.store.transaction(() => {
      const kept = this.#keep(output);
      return kept ? this.store.replaceOutput(job, kept.key, kept.size) : job;
    });
  }

  append(job: JobRow, worker: string, chunk: unknown): boolean {
    if (job.status !== "IN_PROGRESS" || job.worker !== worker) return false;
    this.store.transaction(() => this.store.chunks.add(job.key, chunk));
    this.#tell(job.id);
    return true;
  }

  /** The worker that took it left before the job reached it. */
  giveBack(job: JobRow, worker: string): void {
    if (job.worker !== worker) return;
    this.apply(job, "returned", {}, true);
    this.dispatch();
  }

  /** Its worker is gone: once it goes back to the queue, the second time it failed. */
  #lose(job: JobRow): void {
    if (job.retries > 0) this.apply(job, "abandoned", { error: abandonedError }, true);
    else this.apply(job, "lost", {}, true);
  }

  /** A built-in worker died in the middle of a job. */
  crash(job: JobRow, worker: string): void {
    if (job.status === "IN_PROGRESS" && job.worker === worker) this.#lose(job);
    this.dispatch();
  }

  /** Moves the job and tells whoever must know; false where the table has no such move. */
  apply(job: JobRow, event: JobEvent, change: Change = {}, byItsWorker = false): boolean {
    const now = this.#around.now();
    const moved = this.store.transaction(() => this.store.move(job, event, now, change));
    if (!moved) return false;
    if (job.status === "IN_PROGRESS") this.#letGo(job, byItsWorker, now);
    if (moved.deleted || isFinal(moved.job.status)) this.#tell(job.id);
    return true;
  }

  #letGo(job: JobRow, byItsWorker: boolean, now: number): void {
    if (job.worker === null) return;
    if (!isBuiltIn(job.worker)) {
      this.workers.drop(job.worker, job.id, !byItsWorker);
      return;
    }
    this.#runs.get(job.id)?.abort();
    if (this.#runs.delete(job.id)) this.#fleet.giveBack(job.worker, now);
  }

  /** All that time does. True where more is due than one turn handles. */
  tick(): boolean {
    const now = this.#around.now();
    const due = this.store.due(now, tickSize);
    for (const job of due) this.#ring(job, now);
    for (const { worker, jobs } of this.workers.lost(now)) {
      for (const id of jobs) {
        const job = this.store.find(id);
        if (job?.status === "IN_PROGRESS" && job.worker === worker) this.#lose(job);
      }
      this.workers.gone(worker);
    }
    for (const key of this.store.payloads.overdueUploads(now)) this.store.payloads.remove(key);
    this.dispatch();
    return due.length === tickSize;
  }

  #ring(job: JobRow, now: number): void {
    const timer = nextTimer(job, this.#settings.executionTimeoutMs);
    if (timer.at > now) this.store.update(job, {});
    else this.apply(job, timer.event, timer.event === "overran" ? { error: overranError } : {});
  }

  /** When time has something to do next. */
  nextDue(): number | undefined {
    const now = this.#around.now();
    const resume =
      this.#around.runBuiltIn && this.store.totals.waiting > 0 ? this.workers.presentUntil(now) : undefined;
    const times = [this.store.nextDue(), this.workers.nextLoss(), resume].filter((time) => time !== undefined);
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  /** Calls back when the job has moved to its end, is gone, or has streamed something. */
  listen(id: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(id);
    };
  }

  #tell(id: string): void {
    for (const listener of this.#listeners.get(id) ?? []) listener();
  }

  runningWorkers(): number {
    return this.#countWorkers().running;
  }

  #countWorkers(): { idle: number; running: number } {
    const now = this.#around.now();
    const attached = this.workers.count(now);
    if (!this.#around.runBuiltIn) return attached;
    const builtIn = this.#fleet.count(this.#settings, now);
    const paused = this.workers.presentUntil(now) !== undefined;
    return { idle: attached.idle + (paused ? 0 : builtIn.idle), running: attached.running + builtIn.running };
  }

  health(): Health {
    const { completed, failed, running: inProgress, waiting: inQueue, retried } = this.store.totals;
    const { idle, running } = this.#countWorkers();
    const workers = { idle, initializing: 0, ready: idle + running, running, throttled: 0, unhealthy: 0 };
    return { jobs: { completed, failed, inProgress, inQueue, retried }, workers, ...this.#scaling(running) };
  }

  #scaling(running: number) {
    const { managed, workersMin, workersMax } = this.#settings;
    if (!managed) return {};
    const { waiting, waitingLow } = this.store.totals;
    const oldest = this.store.firstWaiting(1)[0]?.queuedAt;
    const longestWaitMs = oldest === undefined ? 0 : this.#around.now() - oldest;
    const target = workersWanted(this.#settings, { waiting: waiting - waitingLow, running, longestWaitMs });
    return { scaling: { ...managed.scaler, workersMin, workersMax, target } };
  }

  readyWorkers(): string[] {
    const now = this.#around.now();
    const paused = this.workers.presentUntil(now) !== undefined;
    const builtIn = this.#around.runBuiltIn && !paused ? this.#fleet.idleWorkers(this.#settings, now) : [];
    return [...this.workers.names(now), ...builtIn];
  }
}
