// The queue's rules at work. Every call is one synchronous turn over storage: a crash leaves all of it or nothing, an error
// in it takes back only the move that it met.
import { limits } from "../../contract/limits.ts";
import { isFinal, type JobState } from "../../contract/states.ts";
import { AttachedWorkers } from "./attached-workers.ts";
import { BuiltInRuns, type RunJob } from "./built-in-runs.ts";
import { isBuiltIn } from "./built-in-workers.ts";
import type { EndpointSettings } from "./endpoint-settings.ts";
import { abandonedError, isHeldBy, type JobEvent, type JobRow, nextTimer, overranError, retentionMs } from "./job.ts";
import { type Change, JobStore } from "./job-store.ts";
import { Listeners } from "./listeners.ts";
import { Presence } from "./presence.ts";
import type { Submission } from "./queue-calls.ts";
import { QueueReport } from "./queue-report.ts";
import { QueueRoom } from "./queue-room.ts";

/** How many overdue jobs one alarm handles before it makes room for calls. */
const tickSize = 500;

export interface QueueDeps {
  readonly now: () => number;
  /** Undefined for an endpoint without built-in workers. */
  readonly runBuiltIn: RunJob | undefined;
}

export class Queue {
  readonly store: JobStore;
  readonly room: QueueRoom;
  readonly report: QueueReport;
  readonly workers: AttachedWorkers;
  readonly presence: Presence;
  /** Told when a job has moved to its end, is gone, or has streamed something. */
  readonly listeners = new Listeners();
  /** Real workers that hold jobs from before a restart, and were not heard of since. */
  readonly #unheard = new Set<string>();
  readonly #builtIn: BuiltInRuns;
  readonly #deps: QueueDeps;
  #settings: EndpointSettings;

  constructor(storage: DurableObjectStorage, settings: EndpointSettings, deps: QueueDeps) {
    this.#deps = deps;
    this.#settings = settings;
    this.#builtIn = new BuiltInRuns(deps.runBuiltIn);
    this.store = new JobStore(storage, () => this.#settings);
    this.room = new QueueRoom(this.store);
    this.presence = new Presence(storage.sql);
    this.workers = new AttachedWorkers(this.presence.until);
    const { store, workers } = this;
    this.report = new QueueReport({
      store,
      workers,
      builtIn: this.#builtIn,
      settings: () => this.#settings,
      now: deps.now,
    });
    this.#recover();
  }

  /**
   * After a restart: built-in runs are lost, and real workers have the full time to be heard of. That time is noted:
   * an endpoint that nobody calls sleeps and restarts until its alarm, and a silent worker has the time once.
   */
  #recover(): void {
    const now = this.#deps.now();
    for (const worker of this.store.busyWorkers()) {
      for (const job of this.store.heldBy(worker)) {
        if (job.dueAt <= now) this.#ring(job, now);
        else if (isBuiltIn(worker)) this.lose(job);
        else this.#holdsUnheard(worker, job, now);
      }
    }
    this.dispatch();
  }

  #holdsUnheard(worker: string, job: JobRow, now: number): void {
    const lostAt = job.lostAt ?? now + limits.workerLostMs;
    this.workers.holds(worker, job.id, lostAt - limits.workerLostMs);
    if (job.lostAt === null && !this.#unheard.has(worker)) this.store.setLostAt(worker, lostAt);
    this.#unheard.add(worker);
  }

  /** A real worker calls. What a restart noted of it is void. */
  heard(worker: string): void {
    this.workers.heard(worker, this.#deps.now());
    if (this.#unheard.delete(worker)) this.store.setLostAt(worker, null);
  }

  /** The job as it is now. Applies its overdue timers first, since the alarm may be late. */
  find(id: string): JobRow | undefined {
    const now = this.#deps.now();
    const job = this.store.find(id);
    if (!job || job.dueAt > now) return job;
    this.#ringAll([job], now);
    this.dispatch();
    return this.store.find(id);
  }

  /** The first jobs in line. Applies overdue timers first. */
  #nextWaiting(count: number, now: number): JobRow[] {
    for (;;) {
      const waiting = this.store.firstWaiting(count);
      const overdue = waiting.filter(({ dueAt }) => dueAt <= now);
      if (overdue.length === 0) return waiting;
      this.#ringAll(overdue, now);
    }
  }

  get settings(): EndpointSettings {
    return this.#settings;
  }

  configure(settings: EndpointSettings): void {
    this.#settings = settings;
    for (const worker of this.store.busyWorkers()) {
      for (const job of this.store.heldBy(worker)) this.store.update(job, {});
    }
    this.dispatch();
  }

  /** False if the named upload is gone. */
  submit(submission: Submission): boolean {
    const { body, inputFrom: from, inputTo: to } = submission;
    const accepted = this.store.transaction(() => {
      const input = this.store.keep(body);
      if (!input) return false;
      const { id, lowPriority, ttlMs, executionTimeoutMs, webhook, origin } = submission;
      const kept = retentionMs(submission.sync, submission.waitMs);
      const job = { id, lowPriority, ttlMs, executionTimeoutMs, webhook, origin, retentionMs: kept };
      this.store.add({ ...job, input: { ...input, from, to } }, this.#deps.now());
      return true;
    });
    if (accepted) this.dispatch();
    return accepted;
  }

  /** Answers the job's state afterwards; a job that has ended keeps its state. */
  cancel(job: JobRow): JobState {
    if (isFinal(job.status)) return job.status;
    this.apply(job, "cancelled");
    this.dispatch();
    return "CANCELLED";
  }

  retry(job: JobRow): boolean {
    const moved = this.apply(job, "retried");
    if (moved) this.dispatch();
    return moved;
  }

  purge(): number {
    this.tick();
    const removed = this.store.transaction(() => this.store.purge(this.#deps.now()));
    this.listeners.tellAll();
    return removed;
  }

  setTtl(job: JobRow, ttlMs: number): void {
    this.store.update(job, { ttlMs });
  }

  /** Gives waiting jobs to workers: to real workers in line first, to built-in ones if no real worker is present. */
  dispatch(): void {
    const now = this.#deps.now();
    for (let { waiting } = this.store.totals; waiting > 0; ) {
      const taken = this.workers.wakeNext(now, (worker) => this.#mayTake(worker));
      if (taken === undefined) break;
      waiting -= taken;
    }
    this.#startBuiltIn(now);
  }

  /** Gives jobs to a real worker: as many as a batch carries, and at least one. */
  take(worker: string, count: number): JobRow[] {
    if (!this.#mayTake(worker)) return [];
    const now = this.#deps.now();
    const batch = this.room.ofOneBatch(this.#nextWaiting(count, now));
    const taken = batch.flatMap((job) => this.#give(job, worker, now) ?? []);
    for (const job of taken) this.workers.holds(worker, job.id, now);
    // Others stand in line for what the batch has left.
    if (taken.length < count) this.dispatch();
    return taken;
  }

  /** A managed endpoint has at most `workersMax` busy workers: one more waits until another is done. */
  #mayTake(worker: string): boolean {
    const { managed, workersMax } = this.#settings;
    return managed === undefined || this.workers.isBusy(worker) || this.workers.busy() < workersMax;
  }

  /** Ends all jobs that wait or run: the endpoint is about to be deleted. */
  retire(): void {
    this.purge();
    for (const worker of this.store.busyWorkers()) {
      for (const job of this.store.heldBy(worker)) this.apply(job, "cancelled");
    }
    this.workers.wakeAll();
  }

  #give(job: JobRow, worker: string, now: number): JobRow | undefined {
    return this.store.transaction(() => this.store.move(job, "taken", now, { worker }))?.job;
  }

  #startBuiltIn(now: number): void {
    const { waiting, waitingLow } = this.store.totals;
    if (waiting === 0 || !this.#builtIn.exist || this.workers.presentUntil(now) !== undefined) return;
    for (const job of this.#nextWaiting(this.#builtIn.free(waiting, waitingLow, this.#settings, now), now)) {
      const worker = this.#builtIn.worker();
      const taken = this.#give(job, worker, now);
      if (taken) this.#builtIn.start(taken, worker);
    }
  }

  /** The worker of the job is gone: the first time the job goes back to the queue, the second time it fails. */
  lose(job: JobRow): void {
    if (job.retries > 0) this.apply(job, "abandoned", { error: abandonedError }, false);
    else this.apply(job, "lost", {}, false);
  }

  /**
   * Moves the job and tells its listeners, and its worker to stop it unless that is gone or has ended the job itself.
   * False if the table has no such move.
   */
  apply(job: JobRow, event: JobEvent, change: Change = {}, tellsToStop = true): boolean {
    const now = this.#deps.now();
    const moved = this.store.transaction(() => this.store.move(job, event, now, change));
    if (!moved) return false;
    if (job.status === "IN_PROGRESS") this.#letGo(job, tellsToStop, now);
    if (moved.deleted || isFinal(moved.job.status)) this.listeners.tell(job.id);
    return true;
  }

  #letGo(job: JobRow, tellsToStop: boolean, now: number): void {
    if (job.worker === null) return;
    if (isBuiltIn(job.worker)) this.#builtIn.letGo(job.id, job.worker, now);
    else this.workers.drop(job.worker, job.id, tellsToStop);
  }

  /** Applies all that is due, up to `tickSize` jobs; the rest is due at once. */
  tick(): void {
    const now = this.#deps.now();
    this.#ringAll(this.store.due(now, tickSize), now);
    for (const { worker, jobs } of this.workers.lost(now)) {
      for (const id of jobs) {
        const job = this.find(id);
        if (job && isHeldBy(job, worker)) this.lose(job);
      }
      this.workers.gone(worker);
    }
    for (const key of this.store.payloads.overdueUploads(now)) this.store.payloads.remove(key);
    this.dispatch();
  }

  /**
   * Applies all that is over of each job: its execution may have ended by time, and its ttl since then. The job is read
   * anew each time, since a listener that is told of it asks for it, and so moves it and others.
   */
  #ringAll(overdue: readonly JobRow[], now: number): void {
    for (const { id } of overdue) {
      for (let job = this.store.find(id); job && job.dueAt <= now; job = this.store.find(id)) this.#ring(job, now);
    }
  }

  #ring(job: JobRow, now: number): void {
    const timer = nextTimer(job, this.#settings.executionTimeoutMs);
    if (timer.at > now) this.store.update(job, {});
    else this.apply(job, timer.event, timer.event === "overran" ? { error: overranError } : {});
  }

  /** When `tick` has something to do next. */
  nextDue(): number | undefined {
    const now = this.#deps.now();
    const waits = this.#builtIn.exist && this.store.totals.waiting > 0;
    const resume = waits ? this.workers.presentUntil(now) : undefined;
    const times = [this.store.nextDue(), this.workers.nextLoss(), this.#builtIn.nextDue(now), resume];
    const known = times.filter((time) => time !== undefined);
    return known.length > 0 ? Math.min(...known) : undefined;
  }
}
