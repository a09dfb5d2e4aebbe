// A sliding window in slots: it never admits more than its limit in any window, and frees a place at most a slot late.

/** A window of so many slots, and the one that is half out of it. */
const slotsAWindow = 50;
const slots = slotsAWindow + 1;

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

  static read(windowMs: number, newest: number, bytes: ArrayBuffer): SlidingCounter {
    return new SlidingCounter(windowMs, newest, new Uint32Array(bytes.slice(0)));
  }

  get newest(): number {
    return this.#newest;
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.#counts.buffer);
  }

  /** A clock that goes back finds what was counted, never less. */
  countAt(now: number): number {
    const slot = Math.floor(now / this.#slotMs);
    const passed = Math.min(slot - this.#newest, slots);
    for (let step = 0; step < passed; step++) {
      const index = (slot - step) % slots;
      this.#sum -= this.#counts[index] ?? 0;
      this.#counts[index] = 0;
    }
    if (slot > this.#newest) this.#newest = slot;
    return this.#sum;
  }

  /** When all of it will have left. */
  add(now: number): number {
    this.countAt(now);
    const index = this.#newest % slots;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sum += 1;
    return this.#leavesAt(0);
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
