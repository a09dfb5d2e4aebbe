// Ids of jobs that the upstream took and their payers' meters have not been told of: an isolate's memory, by payer.
import { isRecent } from "../../wire/recent.ts";
import type { Binding } from "../quota/metering.ts";

interface Waiting {
  binds: Binding[];
  /** Somebody who waits for it tells the meter a while later. */
  promisedAt: number;
}

/** Who promised to flush may have died with its request. */
const lostMs = 1_000;
/** Of a payer who never calls again: by then the meter knows the id from elsewhere, or has given the admission up. */
const forgottenMs = 10 * 60_000;

/** They go with the payer's next call, or by themselves within a second. */
export class PendingBinds {
  /** Tests set their own. */
  flushMs = 1_000;
  readonly #waiting = new Map<string, Waiting>();

  /** True where nobody has promised to flush them: the caller does, after `flushMs`. */
  add(payer: string, binds: readonly Binding[], now: number): boolean {
    this.#forget(now);
    const waiting = this.#waiting.get(payer);
    if (waiting) waiting.binds.push(...binds);
    else this.#waiting.set(payer, { binds: [...binds], promisedAt: now });
    if (!waiting) return true;
    if (isRecent(waiting.promisedAt, this.flushMs + lostMs, now)) return false;
    waiting.promisedAt = now;
    this.#waiting.delete(payer);
    this.#waiting.set(payer, waiting);
    return true;
  }

  /** Those of the oldest payers come first. */
  #forget(now: number): void {
    for (const [payer, waiting] of this.#waiting) {
      // What waits since a moment ahead of the clock waits from now on: it is nobody's fault that the clock was set back.
      if (waiting.promisedAt > now) waiting.promisedAt = now;
      else if (isRecent(waiting.promisedAt, this.flushMs + forgottenMs, now)) return;
      else this.#waiting.delete(payer);
    }
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** To be carried by a call; what a call that failed has carried is added again. */
  take(payer: string): readonly Binding[] {
    const waiting = this.#waiting.get(payer);
    if (!waiting || waiting.binds.length === 0) return [];
    const { binds } = waiting;
    waiting.binds = [];
    return binds;
  }

  /** The promise is kept: what is left goes now. */
  flush(payer: string): readonly Binding[] {
    const binds = this.take(payer);
    this.#waiting.delete(payer);
    return binds;
  }
}

/** One an isolate. */
export const pendingBinds = new PendingBinds();
