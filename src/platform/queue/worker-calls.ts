// What workers ask of an endpoint's queue: jobs, held until there are some, and to be heard about the jobs that they have.
import { limits } from "../../contract/limits.ts";
import type { PublicModel } from "./built-in-runs.ts";
import { isBuiltIn } from "./built-in-workers.ts";
import type { HeldCalls } from "./held-calls.ts";
import { isHeldBy, type JobRow } from "./job.ts";
import { requestOf } from "./job-view.ts";
import type { Queue } from "./queue.ts";
import type { JobOutcome } from "./queue-calls.ts";
import {
  noEndpoint,
  noJob,
  noRoomError,
  notHeld,
  queueFull,
  type Refusal,
  type TakenJob,
  tooManyWorkers,
} from "./views.ts";

export interface WorkerCallsDeps {
  readonly queue: Queue;
  readonly model: PublicModel | undefined;
  readonly held: HeldCalls;
  readonly now: () => number;
  /** Called after every change: the alarm may be due at another time. */
  readonly changed: () => void;
}

export class WorkerCalls {
  readonly #deps: WorkerCallsDeps;

  constructor(deps: WorkerCallsDeps) {
    this.#deps = deps;
  }

  /** Holds until there is a job. A worker that leaves meanwhile says so by its ticket, or gives the jobs back. */
  async take(worker: string, ticket: string, count: number, holdMs: number): Promise<TakenJob[] | Refusal> {
    const { queue, now, changed } = this.#deps;
    const deadline = now() + holdMs;
    for (;;) {
      const refusal = this.#meet(worker);
      if (refusal) return refusal;
      const jobs = queue.take(worker, count);
      changed();
      if (jobs.length > 0) return jobs.map((job) => ({ id: job.id, request: requestOf(job, queue.store.payloads) }));
      const left = deadline - now();
      if (left <= 0 || !(await this.#holdForJob(ticket, worker, count, left))) return [];
    }
  }

  /** Resolves to true once there may be a job. A waiting worker counts as present until its hold is over. */
  async #holdForJob(ticket: string, worker: string, batch: number, ms: number): Promise<boolean> {
    const { queue, held, now } = this.#deps;
    const { workers, presence } = queue;
    presence.note(now() + ms + limits.workerLostMs);
    const ending = await held.hold(ticket, ms, (wake) => workers.onJob(worker, batch, wake, now()));
    if (ending === "over") this.#heard(worker);
    if (ending === "left") presence.note(workers.presentUntil(now()) ?? now());
    return ending === "woken";
  }

  /** The worker left before the jobs reached it. */
  giveBack(worker: string, ids: readonly string[]): void {
    const { queue } = this.#deps;
    for (const id of ids) this.#release(worker, id, (job) => queue.apply(job, "returned", {}, false));
  }

  /** The jobs that the worker must stop. Waits until there is one. */
  async stops(worker: string, ticket: string, holdMs: number): Promise<string[] | Refusal> {
    const { queue, held, now } = this.#deps;
    const refusal = this.#meet(worker);
    if (refusal) return refusal;
    const known = queue.workers.takeStops(worker);
    if (known.length > 0) return known;
    const ending = await held.hold(ticket, holdMs, (wake) => queue.workers.onStop(worker, wake, now()));
    return ending === "woken" ? queue.workers.takeStops(worker) : [];
  }

  /** A worker names the jobs that it works on. A job that it holds and does not name is lost. */
  ping(worker: string, jobs: readonly string[]): { ok: true } | Refusal {
    const { queue, changed } = this.#deps;
    const refusal = this.#meet(worker);
    if (refusal) return refusal;
    const now = this.#deps.now();
    queue.workers.disown(worker, jobs, now);
    for (const job of queue.store.heldBy(worker)) {
      const known = jobs.includes(job.id) || (job.takenAt ?? now) + limits.workerLostMs > now;
      if (!known) queue.lose(job);
    }
    queue.dispatch();
    changed();
    return { ok: true };
  }

  finish(worker: string, id: string, { error, output }: JobOutcome): { ok: true } | Refusal {
    const { queue, model } = this.#deps;
    return this.#release(worker, id, (job) => {
      const keeps = queue.room.keeps(output);
      const reported = this.#replaceOutput(job, keeps ? output : null);
      if (!reported) return false;
      if (!keeps && output && "upload" in output) queue.store.payloads.remove(output.upload);
      const fault = error ?? (keeps ? null : noRoomError);
      queue.apply(reported, fault === null ? "completed" : "failed", { error: fault }, false);
      if (fault === null) model?.completed(reported);
      return true;
    });
  }

  report(worker: string, id: string, progress: JobOutcome["output"]): { ok: true } | Refusal {
    if (!this.#deps.queue.room.keeps(progress)) return queueFull;
    return this.#onJob(worker, id, (job) => this.#replaceOutput(job, progress) !== undefined);
  }

  /** Undefined if the named upload is gone. */
  #replaceOutput(job: JobRow, output: JobOutcome["output"]): JobRow | undefined {
    const { store } = this.#deps.queue;
    return store.transaction(() => {
      const kept = output === null ? { key: null, size: 0 } : store.keep(output);
      return kept && store.replaceOutput(job, kept.key, kept.size);
    });
  }

  append(worker: string, id: string, chunk: unknown): { ok: true } | Refusal {
    const { queue, model } = this.#deps;
    return this.#onJob(worker, id, (job) => {
      queue.store.transaction(() => queue.store.append(job, chunk));
      model?.streamed(job, chunk);
      queue.listeners.tell(id);
      return true;
    });
  }

  /** A built-in worker died in the middle of the job. */
  crash(worker: string, id: string): void {
    const { queue } = this.#deps;
    this.#release(worker, id, (job) => {
      queue.lose(job);
      return true;
    });
  }

  /** The worker asks to be restarted: it does not count as present until it is heard of again. */
  restart(worker: string): void {
    const { queue } = this.#deps;
    if (queue.store.heldBy(worker).length === 0) queue.workers.gone(worker);
  }

  /** A real worker calls. */
  #meet(worker: string): Refusal | undefined {
    const { queue, now } = this.#deps;
    if (queue.settings.closed) return noEndpoint;
    if (!queue.workers.hasRoomFor(worker, now())) return tooManyWorkers;
    this.#heard(worker);
    return undefined;
  }

  /** Notes that a real worker is present. Built-in workers pause then, also after this object has slept. */
  #heard(worker: string): void {
    const { queue, now } = this.#deps;
    queue.heard(worker);
    queue.presence.note(now() + limits.workerLostMs);
  }

  /** The worker is free afterwards: the next job may start. */
  #release(worker: string, id: string, act: (job: JobRow) => boolean): { ok: true } | Refusal {
    return this.#onJob(worker, id, (job) => {
      const released = act(job);
      this.#deps.queue.dispatch();
      return released;
    });
  }

  /** Refused where the worker does not hold the job: it was cancelled, timed out, or given to another. */
  #onJob(worker: string, id: string, act: (job: JobRow) => boolean): { ok: true } | Refusal {
    const { queue, changed } = this.#deps;
    const job = queue.find(id);
    if (!job) return noJob;
    const isHeld = isHeldBy(job, worker);
    if (isHeld && !isBuiltIn(worker)) this.#heard(worker);
    const accepted = isHeld && act(job);
    changed();
    return accepted ? { ok: true } : notHeld;
  }
}
