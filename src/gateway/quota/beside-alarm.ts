// Work that a meter's alarm starts and does not wait for, a limited number of one kind at once.
import { framesOf, nameOfFault } from "../../errors.ts";

export class BesideAlarm {
  readonly #most: number;
  readonly #ended: () => void;
  #underWay = 0;

  /** `ended`: a place is free again. */
  constructor(most: number, ended: () => void) {
    this.#most = most;
    this.#ended = ended;
  }

  get free(): number {
    return this.#most - this.#underWay;
  }

  /** The rows of what fails are due again. */
  async begin(work: Promise<void>): Promise<void> {
    this.#underWay += 1;
    try {
      await work;
    } catch (error) {
      console.error(JSON.stringify({ meter: "work failed", error: nameOfFault(error), stack: framesOf(error) }));
    } finally {
      this.#underWay -= 1;
      this.#ended();
    }
  }
}
