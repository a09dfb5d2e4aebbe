// The real workers of an endpoint: who was heard of, what each holds, who waits for a job, what each is told to stop.
import { limits } from "../../contract/limits.ts";

interface Attached {
  heardAt: number;
  /** What it holds, and since when its pings do not name it. */
  readonly jobs: Map<string, number | undefined>;
  readonly stops: Set<string>;
  onStop: (() => void) | undefined;
}

/** A job that three pings in a row do not name never reached its worker: the answer to its take was cut off. */
const deniedMs = 2 * limits.workerPingMs;

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
    this.#at(worker, now).jobs.set(job, undefined);
  }

  /** The job is over for its worker; told to stop where that was not its own doing. */
  drop(worker: string, job: string, stop: boolean): void {
    const attached = this.#workers.get(worker);
    if (!attached?.jobs.delete(job) || !stop) return;
    attached.stops.add(job);
    attached.onStop?.();
  }

  /** What a ping names: jobs that its worker does not hold any more are to be stopped, those that it leaves out are noted. */
  pinged(worker: string, jobs: readonly string[], now: number): void {
    const attached = this.#at(worker, now);
    for (const [job, since] of attached.jobs) attached.jobs.set(job, jobs.includes(job) ? undefined : (since ?? now));
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

  /** The one who waits longest. */
  nextTaker(): Taker | undefined {
    return this.#takers.shift();
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

  /** Jobs whose workers were not heard of for too long, or do not know of them. */
  lost(now: number): { worker: string; jobs: string[] }[] {
    const lost = [...this.#workers].map(([worker, attached]) => {
      const jobs = [...attached.jobs.keys()].filter((job) => lossOf(attached, job) <= now);
      return { worker, jobs };
    });
    return lost.filter(({ jobs }) => jobs.length > 0);
  }

  nextLoss(): number | undefined {
    const losses = [...this.#workers.values()].flatMap((attached) =>
      [...attached.jobs.keys()].map((job) => lossOf(attached, job)),
    );
    return losses.length > 0 ? Math.min(...losses) : undefined;
  }

  count(now: number): { idle: number; running: number } {
    this.#forget(now);
    const running = [...this.#workers.values()].filter(({ jobs }) => jobs.size > 0).length;
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
    const attached: Attached = { heardAt: now, jobs: new Map(), stops: new Set(), onStop: undefined };
    this.#workers.set(worker, attached);
    return attached;
  }
}

function lossOf({ heardAt, jobs }: Attached, job: string): number {
  const deniedSince = jobs.get(job) ?? Number.POSITIVE_INFINITY;
  return Math.min(heardAt + limits.workerLostMs, deniedSince + deniedMs);
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
