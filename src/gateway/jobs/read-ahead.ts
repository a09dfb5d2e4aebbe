// When the copy of a teed stream is read, and how much at once.
//
// The runtime fetches for both readers as much as the one that wants more: events would reach the client late, in batches.
// One that turns fast is read so all the same, since its batches take milliseconds and cost far less CPU; only where it pauses,
// its last events, less than 4 KB, wait with it. Of a slow stream the copy is read now and then, and whatever is there.
//
// Nor is the copy read far ahead of a slow client: what the client has not read waits in memory. How much waits there, the
// runtime does not say; so once as much was read as may wait, reads become probes. A client is doubted no more
// - if a read brings more than the runtime fetches for it: the client fetched the rest, after all that came before;
// - if a read has to wait: the stream is so slow that little waits, whether the client reads or not.
// Until then the pauses between probes grow, and after `patienceMs` the client is let go.
import { isRecent } from "../../isolate/recent.ts";

/** How much may wait in memory for a client before it is doubted. The probes that follow add up to half a megabyte. */
const aheadBytes = 256 * 1024;
/** Reads of a fast stream, the first and those after it. It is fast as long as none of them takes `fastMs`. */
const fast = { leastBytes: 2 * 1024, roomBytes: 8 * 1024 };
const faster = { leastBytes: 4 * 1024, roomBytes: 8 * 1024 };
const fastMs = 10;
/** Of a slow one, and of one that brings little. */
const slow = { leastBytes: 1, roomBytes: 4 * 1024 };
const calm = { leastBytes: 1, roomBytes: 1024 };
const probed = { leastBytes: 1, roomBytes: 32 * 1024 };
/** Of what goes to no client any more. */
const unwatched = { leastBytes: 8 * 1024, roomBytes: 32 * 1024 };
/** Between two reads of a slow stream. One that fills a read after the shortest is fast. */
const pauses = { leastMs: 10, mostMs: 250 };
/** Between two probes. After the longest a probe brings enough even of 40-byte events that come every 25 ms. */
const probes = { firstMs: 10, mostMs: 12_000 };
/** What the runtime makes room for with one read, and keeps for the client however little it brings (kj's `AsyncTee`). */
const blockBytes = 16 * 1024;
/** A read that took as long had to wait. */
const waitedMs = 25;
const patienceMs = 30_000;

export class ReadAhead {
  #next: { readonly leastBytes: number; readonly roomBytes: number } = slow;
  #waitMs = 0;
  /** The last pause between reads of a slow stream. */
  #pauseMs = pauses.leastMs;
  #aheadBytes = 0;
  #doubt: { readonly since: number; readonly pauseMs: number } | undefined;
  #isServed = false;
  readonly #served: Promise<void>;

  /** `allServed` resolves when nothing waits for the client any more. */
  constructor(allServed: Promise<void>) {
    this.#served = allServed.then(() => {
      this.#isServed = true;
    });
  }

  /** How much the next read makes room for. */
  get roomBytes(): number {
    return this.#isServed ? unwatched.roomBytes : this.#next.roomBytes;
  }

  /** How much it waits for. */
  get leastBytes(): number {
    return this.#isServed ? unwatched.leastBytes : this.#next.leastBytes;
  }

  /** Waits until the next read is due. False where the client is to be let go. */
  async mayRead(): Promise<boolean> {
    if (this.#isServed) return true;
    if (this.#doubt && !isRecent(this.#doubt.since, patienceMs, Date.now())) return false;
    if (this.#waitMs > 0) await this.#wait();
    return true;
  }

  async #wait(): Promise<void> {
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, this.#waitMs);
    await Promise.race([waited.promise, this.#served]);
    clearTimeout(timer);
  }

  brought(bytes: number, tookMs: number): void {
    if (bytes > blockBytes || tookMs >= waitedMs) {
      this.#aheadBytes = 0;
      this.#doubt = undefined;
    } else this.#aheadBytes += Math.min(this.#next.roomBytes, blockBytes);
    if (this.#aheadBytes > aheadBytes) this.#probeNext();
    else if (this.#isFast(bytes, tookMs)) this.#readFast();
    else this.#readSlowly(bytes);
  }

  #isFast(bytes: number, tookMs: number): boolean {
    if (this.#next.leastBytes > 1) return tookMs < fastMs;
    return bytes >= this.#next.roomBytes && tookMs < fastMs && this.#waitMs === pauses.leastMs;
  }

  #readFast(): void {
    this.#next = this.#next.leastBytes > 1 ? faster : fast;
    this.#waitMs = 0;
  }

  #readSlowly(bytes: number): void {
    const isFull = bytes >= this.#next.roomBytes;
    if (isFull) this.#pauseMs = Math.max(pauses.leastMs, this.#pauseMs / 2);
    else if (bytes < calm.roomBytes) this.#pauseMs = Math.min(pauses.mostMs, 2 * this.#pauseMs);
    this.#waitMs = isFull ? 0 : this.#pauseMs;
    this.#next = !isFull && this.#pauseMs === pauses.mostMs ? calm : slow;
  }

  /** Two after each pause: the first one shows what the client fetched in it, the second how fast the stream is. */
  #probeNext(): void {
    this.#next = probed;
    if (this.#doubt && this.#waitMs > 0) {
      this.#waitMs = 0;
      return;
    }
    this.#waitMs = this.#doubt ? Math.min(2 * this.#doubt.pauseMs, probes.mostMs) : probes.firstMs;
    this.#doubt = { since: this.#doubt?.since ?? Date.now(), pauseMs: this.#waitMs };
  }
}
