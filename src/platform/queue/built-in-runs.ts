// What the built-in workers run just now: each run can be stopped, and gives its worker back to the fleet.
import type { EndpointSettings } from "./endpoint-settings.ts";
import { Fleet, isBuiltIn } from "./fleet.ts";
import type { JobRow } from "./job.ts";

/** Runs the job; the signal says that nobody wants its result any more. */
export type RunJob = (job: JobRow, worker: string, signal: AbortSignal) => void;

/** An object that nobody calls is put to sleep, and its runs die with it: its alarm rings for them meanwhile. */
const wakefulMs = 30_000;

export class BuiltInRuns {
  readonly #fleet = new Fleet();
  readonly #runs = new Map<string, AbortController>();
  readonly #run: RunJob | undefined;

  constructor(run: RunJob | undefined) {
    this.#run = run;
  }

  get exist(): boolean {
    return this.#run !== undefined;
  }

  free(waiting: number, waitingLow: number, settings: EndpointSettings, now: number): number {
    return this.#run ? this.#fleet.free(waiting, waitingLow, settings, now) : 0;
  }

  worker(): string {
    return this.#fleet.take();
  }

  start(job: JobRow, worker: string): void {
    const run = new AbortController();
    this.#runs.set(job.id, run);
    this.#run?.(job, worker, run.signal);
  }

  /** The job is over for its worker, which is free again. A run of an earlier life of this object has none. */
  letGo(job: JobRow, now: number): void {
    this.#runs.get(job.id)?.abort();
    if (this.#runs.delete(job.id) && job.worker !== null && isBuiltIn(job.worker))
      this.#fleet.giveBack(job.worker, now);
  }

  nextDue(now: number): number | undefined {
    return this.#runs.size > 0 ? now + wakefulMs : undefined;
  }

  count(settings: EndpointSettings, now: number): { idle: number; running: number } {
    return this.#run ? this.#fleet.count(settings, now) : { idle: 0, running: 0 };
  }

  idleWorkers(settings: EndpointSettings, now: number): string[] {
    return this.#run ? this.#fleet.idleWorkers(settings, now) : [];
  }
}
