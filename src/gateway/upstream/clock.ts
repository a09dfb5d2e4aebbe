// How long a call may take: one timer for the answer's head and its body, since on a poll a timer costs as much as reading.

export class Clock {
  #giveUp: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #moreMs: number | undefined;
  #abort: AbortController | undefined;
  #isOver = false;

  constructor(ms: number) {
    this.#wind(ms);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Made for who asks: it costs more than the timer. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isOver) this.#abort.abort();
    return this.#abort.signal;
  }

  /** Resolves with the work, or rejects when time has run out. Only one work at a time. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#giveUp = () => reject(new Error("no answer in time"));
      if (this.#isOver) this.#giveUp();
      work.then(resolve, reject);
    });
  }

  /** When time runs out, grants `ms` once more, also after `restart`. */
  extend(ms: number): void {
    this.#moreMs = ms;
  }

  /** Restarts the clock with `ms`, unless it was stopped. */
  restart(ms: number): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#wind(ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = null;
  }

  #wind(ms: number): void {
    this.#timer = setTimeout(() => this.#ring(), ms);
  }

  #ring(): void {
    if (this.#moreMs !== undefined) {
      this.#wind(this.#moreMs);
      this.#moreMs = undefined;
      return;
    }
    this.#timer = null;
    this.#isOver = true;
    this.#abort?.abort();
    this.#giveUp?.();
  }
}
