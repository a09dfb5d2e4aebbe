// Limits how often a log line is written that every request would cause.
import { isRecent } from "./recent.ts";

export class Reminder {
  readonly #everyMs: number;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** Whether it is time to log it again. If so, it counts as logged. */
  isDue(now: number): boolean {
    if (isRecent(this.#lastAt, this.#everyMs, now)) return false;
    this.#lastAt = now;
    return true;
  }
}
