// Job ids and ends that a payer's meter has not been told yet, in the isolate's memory, by payer.
import { isRecent } from "../../isolate/recent.ts";
import type { Binding, Ending } from "../quota/metering.ts";

interface Waiting {
  binds: (Binding | Ending)[];
  /** When a request promised to tell the meter. */
  promisedAt: number;
}

/** A promise older than this is void: its request may have died. */
const lostMs = 1_000;
/**
 * Entries of a payer who does not call again are dropped after this. By then the meter knows the id from a notice, or
 * gave the admission up.
 */
const forgottenMs = 10 * 60_000;

/** They go with the payer's next call of its meter, or by themselves after `flushMs`. */
export class PendingBinds {
  /** Tests set their own. */
  flushMs = 1_000;
  readonly #waiting = new Map<string, Waiting>();

  /** Adds entries. True if no other request has promised to flush them: then the caller must, after `flushMs`. */
  add(payer: string, binds: readonly (Binding | Ending)[], now: number): boolean {
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
      // A promise from the future means that the clock was set back: count it from now.
      if (waiting.promisedAt > now) waiting.promisedAt = now;
      else if (isRecent(waiting.promisedAt, this.flushMs + forgottenMs, now)) return;
      else this.#waiting.delete(payer);
    }
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Takes the entries that go along with a call. If the call fails, its caller adds them again. */
  take(payer: string): readonly (Binding | Ending)[] {
    const waiting = this.#waiting.get(payer);
    if (!waiting || waiting.binds.length === 0) return [];
    const { binds } = waiting;
    waiting.binds = [];
    return binds;
  }

  /** Takes what is left, and ends the promise. */
  flush(payer: string): readonly (Binding | Ending)[] {
    const binds = this.take(payer);
    this.#waiting.delete(payer);
    return binds;
  }
}

/** Shared by all requests of the isolate. */
export const pendingBinds = new PendingBinds();
