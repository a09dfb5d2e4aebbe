// The contract's rates for one endpoint: requests in a sliding window, and requests at once. Kept in memory, since a
// restart that forgets ten seconds harms nobody.
import { effectiveRate, type RatedOperation, rates, rateWindowMs } from "../../contract/rates.ts";

const slots = 100;
const slotMs = rateWindowMs / slots;
/** A caller asks for the end of its job as soon as that is submitted. One that has not by then is gone. */
const begunMs = 10_000;

export type RateVerdict = { allowed: true } | { allowed: false; retryAfterSeconds: number; detail: string };

class SlidingWindow {
  readonly #counts = new Uint32Array(slots);
  #newest = 0;
  #sum = 0;

  advance(now: number): void {
    const slot = Math.floor(now / slotMs);
    if (slot < this.#newest - 1) this.#forget(slot);
    const steps = Math.min(slot - this.#newest, slots);
    for (let step = 1; step <= steps; step++) {
      const index = (slot - steps + step) % slots;
      this.#sum -= this.#counts[index] ?? 0;
      this.#counts[index] = 0;
    }
    if (slot > this.#newest) this.#newest = slot;
  }

  /** A clock that was set back would leave what was counted in the window until it has caught up. */
  #forget(slot: number): void {
    this.#counts.fill(0);
    this.#sum = 0;
    this.#newest = slot;
  }

  get sum(): number {
    return this.#sum;
  }

  add(): void {
    const index = this.#newest % slots;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sum += 1;
  }

  /** When enough of the oldest requests have left the window for one more. */
  freeAfterMs(limit: number, now: number): number {
    let left = this.#sum;
    for (let step = 1; step <= slots; step++) {
      left -= this.#counts[(this.#newest + step) % slots] ?? 0;
      if (left < limit) return (this.#newest + step) * slotMs - now;
    }
    return rateWindowMs;
  }
}

export class RateLimits {
  readonly #windows = new Map<RatedOperation, SlidingWindow>();
  readonly #atOnce = new Map<RatedOperation, number>();
  /** Since when a request is under way whose job was submitted, and whose wait is still to come; the oldest first. */
  readonly #begun = new Map<RatedOperation, Map<string, number>>();

  /** Counts the request when it is allowed. */
  admit(operation: RatedOperation, runningWorkers: number, requestsPerWorker: number, now: number): RateVerdict {
    const rate = effectiveRate(rates[operation], runningWorkers, requestsPerWorker);
    const window = this.#window(operation);
    window.advance(now);
    if (window.sum >= rate.requests) {
      const retryAfterSeconds = Math.max(1, Math.ceil(window.freeAfterMs(rate.requests, now) / 1000));
      return { allowed: false, retryAfterSeconds, detail: `more than ${rate.requests} requests in 10 seconds` };
    }
    if (this.#underway(operation, now) >= rate.concurrent) {
      return { allowed: false, retryAfterSeconds: 1, detail: `more than ${rate.concurrent} requests at once` };
    }
    window.add();
    return { allowed: true };
  }

  /** Counts a request as under way from the submit of its job until it enters to wait for it. */
  begin(operation: RatedOperation, job: string, now: number): void {
    const begun = this.#begun.get(operation) ?? new Map<string, number>();
    this.#begun.set(operation, begun.set(job, now));
  }

  /** A request that was counted and takes its time; the returned function says that it is over. */
  enter(operation: RatedOperation, job?: string): () => void {
    if (job !== undefined) this.#begun.get(operation)?.delete(job);
    this.#atOnce.set(operation, (this.#atOnce.get(operation) ?? 0) + 1);
    return () => this.#atOnce.set(operation, Math.max(0, (this.#atOnce.get(operation) ?? 0) - 1));
  }

  #underway(operation: RatedOperation, now: number): number {
    const begun = this.#begun.get(operation) ?? new Map<string, number>();
    for (const [job, at] of begun) {
      if (at <= now && now < at + begunMs) break;
      begun.delete(job);
    }
    return (this.#atOnce.get(operation) ?? 0) + begun.size;
  }

  #window(operation: RatedOperation): SlidingWindow {
    const known = this.#windows.get(operation);
    if (known) return known;
    const window = new SlidingWindow();
    this.#windows.set(operation, window);
    return window;
  }
}
