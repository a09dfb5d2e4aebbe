// Limits how far the copy of a teed stream is read ahead of a slow client: what the client has not read waits in
// memory, and the runtime does not say how much that is. A read of the copy gives a hint:
// - It brings more than the runtime fetches for one read: the client fetched the rest, so it reads.
// - It had to wait for its bytes: all earlier ones were read by both sides.
// - Otherwise perhaps only the copy is read: pause, and after `patienceMs` let the client go.
import { isRecent } from "../../isolate/recent.ts";

/** How much may wait in memory for a client at any time. */
const aheadBytes = 256 * 1024;
/** What the runtime fetches for one read (kj's `AsyncTee`), and what a read may have waited for before the last one. */
const fetchedBytes = 16 * 1024 + 8 * 1024;
/** A read that takes as long had to wait for its bytes. */
const whileMs = 50;
/** Pauses between reads, in which the client may catch up. Each is twice as long as the one before. */
const pauses = { firstMs: 50, maxMs: 4_000 };
/** A client that fetches nothing for so long is let go. */
const patienceMs = 30_000;

export class ReadAhead {
  #bytes = 0;
  #pauseMs = 0;
  #doubtedSince: number | undefined;
  #isServed = false;
  readonly #served: Promise<void>;

  /** `served` resolves when nothing waits for the client any more. */
  constructor(served: Promise<void>) {
    this.#served = served.then(() => {
      this.#isServed = true;
    });
  }

  /** Before the next read. False where the client is to be let go. */
  async mayRead(): Promise<boolean> {
    if (this.#pauseMs > 0 && !this.#isServed) await this.#pause();
    return this.#isServed || this.#doubtedSince === undefined || isRecent(this.#doubtedSince, patienceMs, Date.now());
  }

  async #pause(): Promise<void> {
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, this.#pauseMs);
    await Promise.race([waited.promise, this.#served]);
    clearTimeout(timer);
  }

  brought(bytes: number, tookMs: number): void {
    this.#bytes += bytes;
    if (this.#bytes < aheadBytes) return;
    const isFetchedByClient = bytes > fetchedBytes || tookMs >= whileMs;
    this.#pauseMs = isFetchedByClient ? 0 : Math.min(Math.max(pauses.firstMs, 2 * this.#pauseMs), pauses.maxMs);
    this.#doubtedSince = isFetchedByClient ? undefined : (this.#doubtedSince ?? Date.now());
  }
}
