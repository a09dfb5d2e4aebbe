// What an endpoint says of itself: its jobs, its workers, and how many its scaler wants.
import type { Health } from "../../contract/job.ts";
import type { AttachedWorkers } from "./attached-workers.ts";
import type { BuiltInRuns } from "./built-in-runs.ts";
import type { EndpointSettings } from "./endpoint-settings.ts";
import type { JobStore } from "./job-store.ts";
import { workersWanted } from "./scaling.ts";

export interface QueueReportDeps {
  readonly store: JobStore;
  readonly workers: AttachedWorkers;
  readonly builtIn: BuiltInRuns;
  readonly settings: () => EndpointSettings;
  readonly now: () => number;
}

export class QueueReport {
  readonly #deps: QueueReportDeps;

  constructor(deps: QueueReportDeps) {
    this.#deps = deps;
  }

  runningWorkers(): number {
    return this.#countWorkers().running;
  }

  /** While real workers are present, idle built-in ones are not counted. */
  #countWorkers(): { idle: number; running: number } {
    const { workers, builtIn, settings } = this.#deps;
    const now = this.#deps.now();
    const attached = workers.count(now);
    const own = builtIn.count(settings(), now);
    const paused = workers.presentUntil(now) !== undefined;
    return { idle: attached.idle + (paused ? 0 : own.idle), running: attached.running + own.running };
  }

  health(): Health {
    const { completed, failed, running: inProgress, waiting: inQueue, retried } = this.#deps.store.totals;
    const { idle, running } = this.#countWorkers();
    const workers = { idle, initializing: 0, ready: idle + running, running, throttled: 0, unhealthy: 0 };
    return { jobs: { completed, failed, inProgress, inQueue, retried }, workers, ...this.#scaling(running) };
  }

  #scaling(running: number) {
    const { store, now } = this.#deps;
    const settings = this.#deps.settings();
    const { managed, workersMin, workersMax } = settings;
    if (!managed) return {};
    const { waiting, waitingLow } = store.totals;
    const oldest = store.firstWaiting(1)[0]?.queuedAt;
    const longestWaitMs = oldest === undefined ? 0 : now() - oldest;
    const target = workersWanted(settings, { waiting: waiting - waitingLow, running, longestWaitMs });
    return { scaling: { ...managed.scaler, workersMin, workersMax, target } };
  }

  readyWorkers(): string[] {
    const { workers, builtIn, settings } = this.#deps;
    const now = this.#deps.now();
    const paused = workers.presentUntil(now) !== undefined;
    return [...workers.names(now), ...(paused ? [] : builtIn.idleWorkers(settings(), now))];
  }
}
