// Work that an object's alarm starts and does not wait for, a limited number of one kind at once.
import { framesOf, nameOfFault } from "../errors.ts";

/** What goes on beside the alarm is mostly done by then. */
const quickMs = 100;

/** What a ring may await of it: enough that it mostly finds its work done, and too little to hold up what is due. */
export async function besideRing(ctx: DurableObjectState, work: readonly Promise<void>[]): Promise<void> {
  const beside = Promise.all(work);
  ctx.waitUntil(beside);
  await Promise.race([beside, scheduler.wait(quickMs)]);
}

export class BesideAlarm {
  readonly #name: string;
  readonly #most: number;
  readonly #ended: () => void;
  #underWay = 0;

  /** `ended`: a place is free again. */
  constructor(name: string, most: number, ended: () => void) {
    this.#name = name;
    this.#most = most;
    this.#ended = ended;
  }

  get free(): number {
    return this.#most - this.#underWay;
  }

  /** The rows of what fails are due again. */
  async begin(work: Promise<unknown>): Promise<void> {
    this.#underWay += 1;
    try {
      await work;
    } catch (error) {
      const fault = { beside: this.#name, error: nameOfFault(error), stack: framesOf(error) };
      console.error(JSON.stringify(fault));
    } finally {
      this.#underWay -= 1;
      this.#ended();
    }
  }
}
