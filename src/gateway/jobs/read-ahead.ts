// How far the copy of a stream is read ahead of a client that may have stopped reading. What the client was not given yet waits
// in memory, and the runtime does not say how much that is. It can be told from what a read of the copy brings:
// - more than the runtime fetches for one read: the client fetched it, and reads;
// - something only after a while: nothing waits but for the model service;
// - else nobody may have fetched it but the copy.
import { isRecent } from "../../wire/recent.ts";

/** So much may wait for a client at any time. */
const aheadBytes = 256 * 1024;
/** What the runtime fetches for one read (kj's `AsyncTee`), and what a read may have waited for before the last one. */
const fetchedBytes = 16 * 1024 + 8 * 1024;
/** An answer that is there takes less. */
const whileMs = 50;
/** The client may fetch meanwhile. */
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
