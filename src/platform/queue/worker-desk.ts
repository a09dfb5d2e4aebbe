// What workers tell: that they are there, and how it goes with the jobs in their hands.
import { limits } from "../../contract/limits.ts";
import type { HeldCalls } from "./held-calls.ts";
import { isHeldBy, type JobRow } from "./job.ts";
import type { Stored } from "./job-store.ts";
import type { Queue } from "./queue.ts";

/** What a worker reports. The output is JSON, or the upload that holds it. */
export interface Outcome {
  readonly error: string | null;
  readonly output: Stored | null;
}

export class WorkerDesk {
  readonly #queue: Queue;
  readonly #now: () => number;

  constructor(queue: Queue, now: () => number) {
    this.#queue = queue;
    this.#now = now;
  }

  /** A real worker is there: built-in ones pause, and still do so when the object has slept meanwhile. */
  heard(worker: string): void {
    this.#queue.workers.heard(worker, this.#now());
    this.#queue.presence.note(this.#now() + limits.workerLostMs);
  }

  /** True once a job may be there. A worker that waits is present until its hold is over. */
  async holdForJob(held: HeldCalls, ticket: string, worker: string, batch: number, ms: number): Promise<boolean> {
    const { workers, presence } = this.#queue;
    presence.note(this.#now() + ms + limits.workerLostMs);
    const ending = await held.hold(ticket, ms, (wake) => workers.onJob(worker, batch, wake, this.#now()));
    if (ending === "over") this.heard(worker);
    if (ending === "left") presence.note(workers.presentUntil(this.#now()) ?? this.#now());
    return ending === "woken";
  }

  /** What the worker is to stop; waits until there is something. */
  async holdForStops(held: HeldCalls, ticket: string, worker: string, ms: number): Promise<string[]> {
    const { workers } = this.#queue;
    const known = workers.takeStops(worker);
    if (known.length > 0) return known;
    const ending = await held.hold(ticket, ms, (wake) => workers.onStop(worker, wake, this.#now()));
    return ending === "woken" ? workers.takeStops(worker) : [];
  }

  /** False where the worker does not hold the job: it was cancelled, timed out, or given to another. */
  finish(job: JobRow, worker: string, outcome: Outcome): boolean {
    if (!isHeldBy(job, worker)) return false;
    const reported = this.#replaceOutput(job, outcome.output);
    if (!reported) return false;
    this.#queue.apply(reported, outcome.error === null ? "completed" : "failed", { error: outcome.error }, true);
    this.#queue.dispatch();
    return true;
  }

  report(job: JobRow, worker: string, progress: Outcome["output"]): boolean {
    return isHeldBy(job, worker) && this.#replaceOutput(job, progress) !== undefined;
  }

  /** Undefined where the upload that it speaks of is gone. */
  #replaceOutput(job: JobRow, output: Outcome["output"]): JobRow | undefined {
    const { store } = this.#queue;
    return store.transaction(() => {
      const kept = output === null ? { key: null, size: 0 } : store.keep(output);
      return kept && store.replaceOutput(job, kept.key, kept.size);
    });
  }

  append(job: JobRow, worker: string, chunk: unknown): boolean {
    if (!isHeldBy(job, worker)) return false;
    this.#queue.store.transaction(() => this.#queue.store.append(job, chunk));
    this.#queue.listeners.tell(job.id);
    return true;
  }

  /** The worker that took it left before the job reached it. */
  giveBack(job: JobRow, worker: string): void {
    if (!isHeldBy(job, worker)) return;
    this.#queue.apply(job, "returned", {}, true);
    this.#queue.dispatch();
  }

  /** What a worker says that it works on. A job that it should have and does not speak of is lost to it. */
  ping(worker: string, jobs: readonly string[]): void {
    const now = this.#now();
    this.#queue.workers.disown(worker, jobs, now);
    for (const job of this.#queue.store.heldBy(worker)) {
      const known = jobs.includes(job.id) || (job.takenAt ?? now) + limits.workerLostMs > now;
      if (!known) this.#queue.lose(job);
    }
    this.#queue.dispatch();
  }

  /** A built-in worker died in the middle of a job. */
  crash(job: JobRow, worker: string): void {
    if (isHeldBy(job, worker)) this.#queue.lose(job);
    this.#queue.dispatch();
  }
}
