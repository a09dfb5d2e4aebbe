// Lets a thing be said now and then that would else be said at every request.
import { isRecent } from "./recent.ts";

export class Reminder {
  readonly #everyMs: number;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** Whether it is time to say it, which it then counts as said. */
  isDue(now: number): boolean {
    if (isRecent(this.#lastAt, this.#everyMs, now)) return false;
    this.#lastAt = now;
    return true;
  }
}
