// Lets a thing be said now and then that would else be said at every request.

export class Reminder {
  readonly #everyMs: number;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** Whether it is time to say it, which it then counts as said. */
  isDue(now: number): boolean {
    if (now - this.#lastAt < this.#everyMs) return false;
    this.#lastAt = now;
    return true;
  }
}
