// The least pace of a body, from a client or a source of media. A body that hardly moves holds memory and a place.
import { inTime } from "../isolate/in-time.ts";
import { TooSlow } from "../json/body-fault.ts";

/** A body may pause for so long. Waiting uses it up, and each byte gives some of it back. */
const patienceMs = 10_000;
const leastBytesPerSecond = 1024;
/** The most that one read asks for: its bytes are counted only when it returns. */
const mostAtOnce = 64 * 1024;
/** What came in such a time may be twice as much the next time. */
const fastMs = 100;

/** The pace of one body. Only the time counts in which its bytes were waited for. */
export class Pace {
  #leftMs = patienceMs;
  #least = 1;

  get isOver(): boolean {
    return this.#leftMs <= 0;
  }

  /** How many bytes a read may ask for. */
  get least(): number {
    return this.#least;
  }

  /** One read after the other. Rejects with `TooSlow` where it takes too long, whatever becomes of it. */
  async take<T>(read: Promise<T>, bytesOf: (taken: T) => number): Promise<T> {
    const startedAt = Date.now();
    const taken = await inTime(Math.max(0, this.#leftMs), read, () => this.#giveUp());
    const tookMs = Date.now() - startedAt;
    const givenBackMs = (1000 * bytesOf(taken)) / leastBytesPerSecond;
    this.#leftMs = Math.min(patienceMs, this.#leftMs - tookMs + givenBackMs);
    this.#least = tookMs < fastMs ? Math.min(this.#least * 2, mostAtOnce) : 1;
    return taken;
  }

  #giveUp(): TooSlow {
    this.#leftMs = 0;
    return new TooSlow();
  }
}
