// The runs of built-in workers: each can be stopped, and frees its worker when it ends.
import { BuiltInWorkers } from "./built-in-workers.ts";
import type { EndpointSettings } from "./endpoint-settings.ts";
import type { JobRow } from "./job.ts";

/** Runs the job. The signal is aborted when its result is no longer wanted. */
export type RunJob = (job: JobRow, worker: string, signal: AbortSignal) => void;

/** An endpoint's model, as its queue knows it. */
export interface PublicModel {
  /** Stands in while no real worker is present. */
  readonly run: RunJob;
  /** Called with what any worker made, built-in or real. */
  readonly streamed: (job: JobRow, chunk: unknown) => void;
  readonly completed: (job: JobRow) => void;
}

/** The runtime evicts an object without calls, and its runs with it: an alarm keeps it awake meanwhile. */
const wakefulMs = 30_000;

export class BuiltInRuns {
  readonly #workers = new BuiltInWorkers();
  readonly #runs = new Map<string, AbortController>();
  readonly #run: RunJob | undefined;

  constructor(run: RunJob | undefined) {
    this.#run = run;
  }

  get exist(): boolean {
    return this.#run !== undefined;
  }

  free(waiting: number, waitingLow: number, settings: EndpointSettings, now: number): number {
    return this.#run ? this.#workers.free(waiting, waitingLow, settings, now) : 0;
  }

  worker(): string {
    return this.#workers.take();
  }

  start(job: JobRow, worker: string): void {
    const run = new AbortController();
    this.#runs.set(job.id, run);
    this.#run?.(job, worker, run.signal);
  }

  /** Ends the run and frees its worker. A run from before a restart of this object has no worker any more. */
  letGo(id: string, worker: string, now: number): void {
    this.#runs.get(id)?.abort();
    if (this.#runs.delete(id)) this.#workers.giveBack(worker, now);
  }

  nextDue(now: number): number | undefined {
    return this.#runs.size > 0 ? now + wakefulMs : undefined;
  }

  count(settings: EndpointSettings, now: number): { idle: number; running: number } {
    return this.#run ? this.#workers.count(settings, now) : { idle: 0, running: 0 };
  }

  idleWorkers(settings: EndpointSettings, now: number): string[] {
    return this.#run ? this.#workers.idleWorkers(settings, now) : [];
  }
}
