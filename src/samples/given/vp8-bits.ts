// The bits of a VP8 partition: an arithmetic code, in which each bit comes with the chance that it is 0 (RFC 6386, section 7).

/** So many bytes may be missing: a coder leaves the last ones out, and they are read ahead. */
const mostMissing = 4;

export class Vp8Bits {
  readonly #data: Uint8Array;
  #at = 0;
  #range = 255;
  #held = 0;
  /** How many of the bits in `#held` come after the eight that are compared with the range. */
  #spare = -8;

  constructor(data: Uint8Array) {
    this.#data = data;
  }

  get isOver(): boolean {
    return this.#at > this.#data.length + mostMissing;
  }

  /** `chance` is of 256. */
  bit(chance: number): number {
    if (this.#spare < 0) {
      const [data, at] = [this.#data, this.#at];
      this.#held = (this.#held << 16) | ((data[at] ?? 0) << 8) | (data[at + 1] ?? 0);
      this.#at = at + 2;
      this.#spare += 16;
    }
    const split = 1 + (((this.#range - 1) * chance) >> 8);
    const limit = split << this.#spare;
    const isOne = this.#held >= limit;
    const range = isOne ? this.#range - split : split;
    if (isOne) this.#held -= limit;
    const shift = Math.clz32(range) - 24;
    this.#range = range << shift;
    this.#spare -= shift;
    return isOne ? 1 : 0;
  }

  flag(): boolean {
    return this.bit(128) === 1;
  }

  number(bits: number): number {
    let value = 0;
    for (let left = bits; left > 0; left--) value = value * 2 + this.bit(128);
    return value;
  }

  /** Where it is said at all, with its sign behind it. */
  difference(bits: number): number {
    if (!this.flag()) return 0;
    const value = this.number(bits);
    return this.flag() ? -value : value;
  }

  /** `tree` has two numbers a node: where to go on at a 0 and at a 1. Below zero is what was found, inverted. */
  branch(tree: readonly number[], chances: ArrayLike<number>, from = 0): number {
    let at = 0;
    while (at >= 0) at = tree[at + this.bit(chances[from + (at >> 1)] as number)] as number;
    return ~at;
  }
}
