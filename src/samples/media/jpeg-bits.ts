// Writes a JPEG's segments and its stream of codes, where a byte of ones is followed by a zero byte.

export class BitWriter {
  #data: Uint8Array;
  #at = 0;
  #held = 0;
  #count = 0;

  constructor(capacity: number) {
    this.#data = new Uint8Array(capacity);
  }

  bytes(values: readonly number[]): void {
    this.#data.set(values, this.#at);
    this.#at += values.length;
  }

  segment(marker: number, values: readonly number[]): void {
    this.bytes([0xff, marker, (values.length + 2) >> 8, (values.length + 2) & 255, ...values]);
  }

  /** A run of zeros and the size of the value as one symbol, then the value's own bits. */
  value(value: number, zeros: number, codes: Int32Array): void {
    const size = 32 - Math.clz32(value < 0 ? -value : value);
    this.code(codes[(zeros << 4) | size] as number);
    if (size) this.#bits(value < 0 ? value + (1 << size) - 1 : value, size);
  }

  code(code: number): void {
    this.#bits(code >> 5, code & 31);
  }

  #bits(bits: number, count: number): void {
    this.#held = (this.#held << count) | bits;
    this.#count += count;
    while (this.#count >= 8) {
      this.#count -= 8;
      const byte = (this.#held >> this.#count) & 255;
      this.#data[this.#at++] = byte;
      if (byte === 255) this.#data[this.#at++] = 0;
    }
    this.#held &= (1 << this.#count) - 1;
    if (this.#at + 16 > this.#data.length) this.#grow();
  }

  #grow(): void {
    const larger = new Uint8Array(this.#data.length * 2);
    larger.set(this.#data);
    this.#data = larger;
  }

  finish(): Uint8Array {
    if (this.#count) this.#bits((1 << (8 - this.#count)) - 1, 8 - this.#count);
    this.bytes([0xff, 0xd9]);
    return this.#data.slice(0, this.#at);
  }
}
