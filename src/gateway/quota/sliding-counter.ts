// A sliding window in slots: it never admits more than its limit in any window, and frees a place at most a slot late.

/** A window of so many slots, and the one that is half out of it. */
const slotsAWindow = 50;
const slots = slotsAWindow + 1;

export type CounterJson = [newest: number, ...placesAndCounts: number[]];

export class SlidingCounter {
  readonly #slotMs: number;
  readonly #counts: Uint32Array;
  #newest: number;
  #sum: number;

  constructor(windowMs: number, newest = 0, counts = new Uint32Array(slots)) {
    this.#slotMs = windowMs / slotsAWindow;
    this.#newest = newest;
    this.#counts = counts;
    this.#sum = counts.reduce((sum, count) => sum + count, 0);
  }

  static read(windowMs: number, [newest, ...counted]: CounterJson): SlidingCounter {
    const counts = new Uint32Array(slots);
    for (let at = 0; at < counted.length; at += 2) counts[counted[at] ?? 0] = counted[at + 1] ?? 0;
    return new SlidingCounter(windowMs, newest, counts);
  }

  /** The newest slot, then the place and the count of each slot that is not empty. */
  get json(): CounterJson {
    const json: CounterJson = [this.#newest];
    for (const [at, count] of this.#counts.entries()) if (count > 0) json.push(at, count);
    return json;
  }

  /** A clock that goes back finds what was counted, never less. */
  countAt(now: number): number {
    const slot = Math.floor(now / this.#slotMs);
    if (slot < this.#newest - 1) this.#moveBack(slot);
    const passed = Math.min(slot - this.#newest, slots);
    for (let step = 0; step < passed; step++) {
      const index = (slot - step) % slots;
      this.#sum -= this.#counts[index] ?? 0;
      this.#counts[index] = 0;
    }
    if (slot > this.#newest) this.#newest = slot;
    return this.#sum;
  }

  /** What was counted while the clock ran ahead counts from now on: it leaves a window later, not an age later. */
  #moveBack(slot: number): void {
    let ahead = 0;
    for (let at = Math.max(slot + 1, this.#newest - slots + 1); at <= this.#newest; at++) {
      ahead += this.#counts[at % slots] ?? 0;
      this.#counts[at % slots] = 0;
    }
    this.#newest = slot;
    this.#counts[slot % slots] = (this.#counts[slot % slots] ?? 0) + ahead;
  }

  add(now: number): void {
    this.countAt(now);
    const index = this.#newest % slots;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sum += 1;
  }

  /** When no more than so many are left. */
  fallsTo(count: number, now: number): number {
    let left = this.countAt(now);
    for (let age = slots - 1; age >= 0; age--) {
      if (left <= count) return this.#leavesAt(age + 1);
      left -= this.#counts[(this.#newest + slots - age) % slots] ?? 0;
    }
    return this.#leavesAt(0);
  }

  #leavesAt(age: number): number {
    return Math.ceil((this.#newest - age + slots) * this.#slotMs);
  }
}
