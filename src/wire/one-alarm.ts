// A Durable Object's one alarm: armed for what is due first, and back soon after it failed.
import { framesOf, nameOfFault } from "../errors.ts";

/** An alarm that failed comes back after this. */
const retryMs = 1000;
const never = Number.POSITIVE_INFINITY;

export class OneAlarm {
  readonly #ctx: DurableObjectState;
  readonly #name: string;
  /** When it rings, or later than it rings; unknown to an object that has just woken and did not note it. */
  #at: number | undefined;

  constructor(ctx: DurableObjectState, name: string, at?: number) {
    this.#ctx = ctx;
    this.#name = name;
    this.#at = at;
  }

  get at(): number | undefined {
    return this.#at;
  }

  /** It rings when the first of these is due, or earlier: they are always recomputed from what is stored. */
  arm(...due: readonly (number | undefined)[]): void {
    const next = Math.min(...due.map((at) => at ?? never));
    if (next === never || (this.#at !== undefined && this.#at <= next)) return;
    this.#at = next;
    this.#ctx.waitUntil(this.#ctx.storage.setAlarm(next));
  }

  /** Never throws: the runtime would give up on the alarm after a few tries, and on all that it owes with it. */
  async ring(act: () => Promise<void>): Promise<void> {
    this.#at = undefined;
    try {
      await act();
    } catch (error) {
      console.error(JSON.stringify({ alarm: this.#name, error: nameOfFault(error), stack: framesOf(error) }));
      this.arm(Date.now() + retryMs);
    }
  }

  /** Nothing is owed any more. */
  async stop(): Promise<void> {
    this.#at = undefined;
    await this.#ctx.storage.deleteAlarm();
  }
}
