// A Durable Object's one alarm: armed for what is due first, back soon after it failed, and done by a call where it is gone.
import { framesOf, nameOfFault } from "../errors.ts";

/** An alarm that failed comes back after this. */
const retryMs = 1000;
/**
 * If storage fails for some minutes, the runtime drops an alarm, and setting the same moment again does not bring it
 * back. So work that is overdue by this much is done by the object's next call, and tried again at growing intervals.
 */
const lateMs = { min: 60_000, max: 60 * 60_000 };
/** An object that was away for long has its late alarm in a moment. */
const graceMs = 5_000;
const never = Number.POSITIVE_INFINITY;

export class OneAlarm {
  /** Tests set their own. */
  graceMs = graceMs;
  readonly #ctx: DurableObjectState;
  readonly #name: string;
  readonly #act: () => Promise<void>;
  /** It rings then, or earlier. Undefined where nothing is known of it since the object woke. */
  #at: number | undefined;
  #rangAt = Number.NEGATIVE_INFINITY;
  #rings = 0;
  #lateMs = lateMs.min;

  constructor(ctx: DurableObjectState, name: string, act: () => Promise<void>, at?: number) {
    this.#ctx = ctx;
    this.#name = name;
    this.#act = act;
    this.#at = at;
  }

  get at(): number | undefined {
    return this.#at;
  }

  /** It rings when the first of these is due, or earlier: they are always recomputed from what is stored. */
  arm(...due: readonly (number | undefined)[]): void {
    let next = never;
    for (const at of due) if (at !== undefined && at < next) next = at;
    const lateBy = Date.now() - Math.max(next, this.#rangAt);
    if (lateBy > this.#lateMs && this.#rings === 0) this.#ctx.waitUntil(this.#catchUp(lateBy));
    if (next === never || (this.#at !== undefined && this.#at <= next)) return;
    this.#at = next;
    this.#ctx.waitUntil(this.#ctx.storage.setAlarm(next));
  }

  /** Never throws: the runtime would give up on the alarm after a few tries, and on all that it owes with it. */
  async ring(): Promise<void> {
    this.#lateMs = lateMs.min;
    await this.#ring();
  }

  async #ring(): Promise<void> {
    this.#at = undefined;
    this.#rangAt = Date.now();
    this.#rings += 1;
    try {
      await this.#act();
    } catch (error) {
      console.error(JSON.stringify({ alarm: this.#name, error: nameOfFault(error), stack: framesOf(error) }));
      this.arm(Date.now() + retryMs);
    } finally {
      this.#rings -= 1;
      this.#rangAt = Date.now();
    }
  }

  async #catchUp(lateBy: number): Promise<void> {
    const seenAt = Date.now();
    this.#rangAt = seenAt;
    await scheduler.wait(this.graceMs);
    if (this.#rangAt !== seenAt) return;
    if (this.#lateMs === lateMs.min) console.error(JSON.stringify({ alarm: this.#name, problem: "is late", lateBy }));
    this.#lateMs = Math.min(2 * this.#lateMs, lateMs.max);
    await this.#ring();
  }

  /** Nothing is owed any more. */
  async stop(): Promise<void> {
    this.#at = undefined;
    await this.#ctx.storage.deleteAlarm();
  }
}
