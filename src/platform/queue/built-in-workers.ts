// The built-in workers of an endpoint: how many run, how many wait, when one more starts and when one goes.

export interface BuiltInSettings {
  readonly workersMin: number;
  readonly workersMax: number;
  readonly idleTimeoutSeconds: number;
}

interface Idle {
  readonly worker: string;
  readonly since: number;
}

/** No real worker has such a name: the worker routes refuse a colon. */
const prefix = "sample:";

export function isBuiltIn(worker: string): boolean {
  return worker.startsWith(prefix);
}

export class BuiltInWorkers {
  #idle: Idle[] = [];
  #busy = 0;

  /** How many workers may take a job now. A job of low priority starts no worker. */
  free(waiting: number, waitingLow: number, settings: BuiltInSettings, now: number): number {
    this.#adjust(settings, now);
    const startable = Math.max(0, settings.workersMax - this.#busy - this.#idle.length);
    return Math.max(0, Math.min(waiting, this.#idle.length + Math.min(startable, waiting - waitingLow)));
  }

  take(): string {
    this.#busy += 1;
    return this.#idle.pop()?.worker ?? newWorker();
  }

  giveBack(worker: string, now: number): void {
    this.#busy -= 1;
    this.#idle.push({ worker, since: now });
  }

  count(settings: BuiltInSettings, now: number): { idle: number; running: number } {
    this.#adjust(settings, now);
    return { idle: this.#idle.length, running: this.#busy };
  }

  idleWorkers(settings: BuiltInSettings, now: number): string[] {
    this.#adjust(settings, now);
    return this.#idle.map(({ worker }) => worker);
  }

  /** Stops workers that were idle for too long, down to the minimum, and starts workers up to it. */
  #adjust({ workersMin, workersMax, idleTimeoutSeconds }: BuiltInSettings, now: number): void {
    const spare = this.#idle.filter(({ since }) => since + idleTimeoutSeconds * 1000 <= now).length;
    const over = Math.max(0, this.#busy + this.#idle.length - workersMin);
    this.#idle = this.#idle.slice(Math.min(spare, over));
    const room = Math.max(0, workersMax - this.#busy);
    if (this.#idle.length > room) this.#idle = this.#idle.slice(this.#idle.length - room);
    while (this.#busy + this.#idle.length < Math.min(workersMin, workersMax)) {
      this.#idle.push({ worker: newWorker(), since: now });
    }
  }
}

function newWorker(): string {
  return `${prefix}${crypto.randomUUID().slice(0, 8)}`;
}
