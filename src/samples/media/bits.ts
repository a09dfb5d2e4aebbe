// Writes bits, and the numbers of H.264 that are as long as they need to be.

export class Bits {
  #bytes = new Uint8Array(1024);
  #at = 0;
  #held = 0;
  #count = 0;

  /** So many bits, at most 24. */
  bits(value: number, count: number): this {
    this.#held = (this.#held << count) | (value & ((1 << count) - 1));
    this.#count += count;
    while (this.#count >= 8) {
      this.#count -= 8;
      if (this.#at === this.#bytes.length) this.#grow();
      this.#bytes[this.#at++] = this.#held >> this.#count;
    }
    return this;
  }

  #grow(): void {
    const larger = new Uint8Array(this.#bytes.length * 2);
    larger.set(this.#bytes);
    this.#bytes = larger;
  }

  zeros(count: number): this {
    for (let left = count; left > 0; left -= 24) this.bits(0, Math.min(24, left));
    return this;
  }

  /** Exp-Golomb: as many zeros as there are bits behind the first one. */
  unsigned(...values: readonly number[]): this {
    for (const value of values) {
      const length = 32 - Math.clz32(value + 1);
      this.zeros(length - 1).bits(value + 1, length);
    }
    return this;
  }

  signed(...values: readonly number[]): this {
    for (const value of values) this.unsigned(value > 0 ? 2 * value - 1 : -2 * value);
    return this;
  }

  /** Zeros up to the next whole byte. */
  align(): this {
    return this.#count > 0 ? this.zeros(8 - this.#count) : this;
  }

  /** Whole bytes only. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }
}
