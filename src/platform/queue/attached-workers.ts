// The real workers of an endpoint: when each was last heard of, which jobs it holds or must stop, which ones wait for a job.
import { limits } from "../../contract/limits.ts";

interface Attached {
  heardAt: number;
  readonly jobs: Set<string>;
  readonly stops: Set<string>;
  /** Its calls that wait to be told what to stop, the newest last. */
  readonly stopCalls: (() => void)[];
  /** Its calls that wait for a job. */
  waiting: number;
}

interface Taker {
  readonly worker: string;
  readonly batch: number;
  readonly wake: () => void;
}

/** Far above what the endpoint's own settings allow; a new name beyond it must wait. */
const maxWorkers = 5000;
/** A worker that never asks what to stop must not fill the memory. */
const maxStops = 1000;

export class AttachedWorkers {
  readonly #workers = new Map<string, Attached>();
  /** The one that waits longest is first. */
  readonly #takers: Taker[] = [];
  /** Until when a worker counts as present from before this object restarted. */
  #presentUntil: number;

  constructor(presentUntil: number) {
    this.#presentUntil = presentUntil;
  }

  hasRoomFor(worker: string, now: number): boolean {
    if (this.#workers.has(worker)) return true;
    if (this.#workers.size >= maxWorkers) this.#forget(now);
    return this.#workers.size < maxWorkers;
  }

  heard(worker: string, now: number): void {
    this.#at(worker, now).heardAt = now;
  }

  gone(worker: string): void {
    this.#workers.delete(worker);
  }

  holds(worker: string, job: string, now: number): void {
    const attached = this.#at(worker, now);
    attached.jobs.add(job);
    attached.stops.delete(job);
  }

  /** The worker no longer holds the job; with `stop` it is told to stop it. */
  drop(worker: string, job: string, stop: boolean): void {
    const attached = this.#workers.get(worker);
    if (attached?.jobs.delete(job) && stop) tellToStop(attached, [job]);
  }

  /** Tells the worker to stop the jobs that it named and does not hold. */
  disown(worker: string, jobs: readonly string[], now: number): void {
    const attached = this.#at(worker, now);
    tellToStop(
      attached,
      jobs.filter((job) => !attached.jobs.has(job)),
    );
  }

  /** The jobs that the worker must stop, each told once. */
  takeStops(worker: string): string[] {
    const attached = this.#workers.get(worker);
    const jobs = [...(attached?.stops ?? [])];
    attached?.stops.clear();
    return jobs;
  }

  onStop(worker: string, wake: () => void, now: number): () => void {
    const { stopCalls } = this.#at(worker, now);
    stopCalls.push(wake);
    return () => remove(stopCalls, wake);
  }

  /** Stands in line for a job. */
  onJob(worker: string, batch: number, wake: () => void, now: number): () => void {
    const attached = this.#at(worker, now);
    const taker = { worker, batch, wake };
    this.#takers.push(taker);
    attached.waiting += 1;
    return () => {
      remove(this.#takers, taker);
      attached.waiting -= 1;
    };
  }

  /** Wakes the worker that waits longest, by its newest call: the caller of an older one may have left unnoticed. */
  wakeNext(now: number, mayTake: (worker: string) => boolean): number | undefined {
    const longest = this.#takers.find(({ worker }) => mayTake(worker));
    const taker = this.#takers.findLast(({ worker }) => worker === longest?.worker);
    if (!taker) return undefined;
    remove(this.#takers, taker);
    this.heard(taker.worker, now);
    taker.wake();
    return taker.batch;
  }

  /** Wakes all that wait for a job. */
  wakeAll(): void {
    for (const { wake } of this.#takers.splice(0)) wake();
  }

  busy(): number {
    let busy = 0;
    for (const { jobs } of this.#workers.values()) busy += jobs.size > 0 ? 1 : 0;
    return busy;
  }

  isBusy(worker: string): boolean {
    return (this.#workers.get(worker)?.jobs.size ?? 0) > 0;
  }

  /** Until when a worker counts as present; undefined if no worker does. */
  presentUntil(now: number): number | undefined {
    this.#forget(now);
    const noted = Math.min(this.#presentUntil, now + limits.takeHoldMs + limits.workerLostMs);
    let until = this.#takers.length > 0 ? now + limits.workerLostMs : noted;
    for (const { heardAt } of this.#workers.values()) until = Math.max(until, heardAt + limits.workerLostMs);
    return until > now ? until : undefined;
  }

  /** Workers that hold jobs and were not heard of for too long. */
  lost(now: number): { worker: string; jobs: string[] }[] {
    this.#setBack(now);
    return [...this.#workers]
      .filter(([, { heardAt, jobs }]) => jobs.size > 0 && heardAt + limits.workerLostMs <= now)
      .map(([worker, { jobs }]) => ({ worker, jobs: [...jobs] }));
  }

  nextLoss(): number | undefined {
    let next: number | undefined;
    for (const { heardAt, jobs } of this.#workers.values()) {
      if (jobs.size > 0) next = Math.min(next ?? Number.POSITIVE_INFINITY, heardAt + limits.workerLostMs);
    }
    return next;
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

  /** Forgets idle workers that stopped polling. */
  #forget(now: number): void {
    this.#setBack(now);
    for (const [worker, { heardAt, jobs, waiting }] of this.#workers) {
      if (heardAt + limits.workerLostMs <= now && jobs.size === 0 && waiting === 0) this.#workers.delete(worker);
    }
  }

  /** If the clock was set back, a worker counts as heard now, not in the future. */
  #setBack(now: number): void {
    for (const attached of this.#workers.values()) attached.heardAt = Math.min(attached.heardAt, now);
  }

  #at(worker: string, now: number): Attached {
    const known = this.#workers.get(worker);
    if (known) return known;
    const attached: Attached = { heardAt: now, jobs: new Set(), stops: new Set(), stopCalls: [], waiting: 0 };
    this.#workers.set(worker, attached);
    return attached;
  }
}

function tellToStop(attached: Attached, jobs: readonly string[]): void {
  for (const job of jobs) {
    if (attached.stops.size < maxStops) attached.stops.add(job);
  }
  if (jobs.length > 0) attached.stopCalls.at(-1)?.();
}

function remove<T>(list: T[], item: T): void {
  const at = list.indexOf(item);
  if (at >= 0) list.splice(at, 1);
}
