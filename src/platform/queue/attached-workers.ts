// The real workers of an endpoint: who was heard of, what each holds, who waits for a job, what each is told to stop.
import { limits } from "../../contract/limits.ts";

interface Attached {
  heardAt: number;
  readonly jobs: Set<string>;
  readonly stops: Set<string>;
  onStop: (() => void) | undefined;
}

interface Taker {
  readonly ticket: string;
  readonly worker: string;
  readonly batch: number;
  readonly resolve: (woken: boolean) => void;
}

export class AttachedWorkers {
  readonly #workers = new Map<string, Attached>();
  #takers: Taker[] = [];

  heard(worker: string, now: number): void {
    this.#at(worker, now).heardAt = now;
  }

  gone(worker: string): void {
    this.#workers.delete(worker);
  }

  holds(worker: string, job: string, now: number): void {
    this.#at(worker, now).jobs.add(job);
  }

  /** The job is over for its worker; told to stop where that was not its own doing. */
  drop(worker: string, job: string, stop: boolean): void {
    const attached = this.#workers.get(worker);
    if (!attached?.jobs.delete(job) || !stop) return;
    attached.stops.add(job);
    attached.onStop?.();
  }

  /** Jobs that a worker speaks of and does not hold any more. */
  disown(worker: string, jobs: readonly string[], now: number): void {
    const attached = this.#at(worker, now);
    const strangers = jobs.filter((job) => !attached.jobs.has(job));
    for (const job of strangers) attached.stops.add(job);
    if (strangers.length > 0) attached.onStop?.();
  }

  /** What the worker is to stop; waits until there is something. */
  async stops(worker: string, holdMs: number, now: number): Promise<string[]> {
    const attached = this.#at(worker, now);
    if (attached.stops.size === 0) {
      await until((resolve) => (attached.onStop = () => resolve(true)), holdMs);
      attached.onStop = undefined;
    }
    const jobs = [...attached.stops];
    attached.stops.clear();
    return jobs;
  }

  /** Waits in line for a job; false when none came. */
  async waitForJob(ticket: string, worker: string, batch: number, holdMs: number): Promise<boolean> {
    const woken = await until((resolve) => this.#takers.push({ ticket, worker, batch, resolve }), holdMs);
    this.#takers = this.#takers.filter((taker) => taker.ticket !== ticket);
    return woken;
  }

  leave(ticket: string): void {
    this.#takers.find((taker) => taker.ticket === ticket)?.resolve(false);
    this.#takers = this.#takers.filter((taker) => taker.ticket !== ticket);
  }

  /** The one who waits longest of those who may take a job. */
  nextTaker(mayTake: (worker: string) => boolean): Taker | undefined {
    const index = this.#takers.findIndex(({ worker }) => mayTake(worker));
    return index < 0 ? undefined : this.#takers.splice(index, 1)[0];
  }

  /** The endpoint is gone: nobody waits any more, and everybody stops. */
  dismiss(): void {
    for (const taker of this.#takers.splice(0)) taker.resolve(false);
    for (const { onStop } of this.#workers.values()) onStop?.();
  }

  busy(): number {
    return [...this.#workers.values()].filter(({ jobs }) => jobs.size > 0).length;
  }

  isBusy(worker: string): boolean {
    return (this.#workers.get(worker)?.jobs.size ?? 0) > 0;
  }

  isWaiting(worker: string): boolean {
    return this.#takers.some((taker) => taker.worker === worker);
  }

  /** Until when somebody counts as present; undefined where nobody does. */
  presentUntil(now: number): number | undefined {
    this.#forget(now);
    if (this.#takers.length > 0) return now + limits.workerLostMs;
    const heard = [...this.#workers.values()].map(({ heardAt }) => heardAt + limits.workerLostMs);
    const until = Math.max(...heard, 0);
    return until > now ? until : undefined;
  }

  /** Workers that hold jobs and were not heard of for too long. */
  lost(now: number): { worker: string; jobs: string[] }[] {
    return [...this.#workers]
      .filter(([, { heardAt, jobs }]) => jobs.size > 0 && heardAt + limits.workerLostMs <= now)
      .map(([worker, { jobs }]) => ({ worker, jobs: [...jobs] }));
  }

  nextLoss(): number | undefined {
    const busy = [...this.#workers.values()].filter(({ jobs }) => jobs.size > 0);
    return busy.length > 0 ? Math.min(...busy.map(({ heardAt }) => heardAt + limits.workerLostMs)) : undefined;
  }

  count(now: number): { idle: number; running: number } {
    this.#forget(now);
    const running = this.busy();
    return { idle: this.#workers.size - running, running };
  }

  names(now: number): string[] {
    this.#forget(now);
    return [...this.#workers.keys()];
  }

  /** A worker without a job that is not heard of any more needs no mourning. */
  #forget(now: number): void {
    for (const [worker, { heardAt, jobs }] of this.#workers) {
      const silent = heardAt + limits.workerLostMs <= now;
      if (silent && jobs.size === 0 && !this.isWaiting(worker)) this.#workers.delete(worker);
    }
  }

  #at(worker: string, now: number): Attached {
    const known = this.#workers.get(worker);
    if (known) return known;
    const attached: Attached = { heardAt: now, jobs: new Set(), stops: new Set(), onStop: undefined };
    this.#workers.set(worker, attached);
    return attached;
  }
}

/** What the callback says, or false when the time is over. */
export async function until(register: (resolve: (value: boolean) => void) => void, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), ms);
  register(resolve);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
