// Searches for several texts at once with the Wu-Manber algorithm: most places are skipped without being looked at.

/** Two bytes are one of so many pairs: few enough for the table to stay near. */
const pairs = 4096;

const pairOf = (first: number, second: number): number => ((first << 5) ^ second) & (pairs - 1);

export class PlainSearch {
  private readonly texts: readonly Uint8Array[];
  /** The beginnings of all texts are cut to the length of the shortest. */
  private readonly length: number;
  /** By the pair of bytes that a beginning would end with: how far on the next place is where one may end. */
  private readonly shifts: Uint8Array;

  /** Each of at least two bytes. */
  constructor(texts: readonly Uint8Array[]) {
    this.texts = texts;
    this.length = Math.min(256, ...texts.map(({ length }) => length));
    this.shifts = new Uint8Array(pairs).fill(this.length - 1);
    for (const text of texts) {
      for (let end = 1; end < this.length; end++) {
        const pair = pairOf(text[end - 1] as number, text[end] as number);
        this.shifts[pair] = Math.min(this.shifts[pair] as number, this.length - 1 - end);
      }
    }
  }

  finds(bytes: Uint8Array, from: number, to: number): boolean {
    const { shifts, length } = this;
    let end = from + length - 1;
    while (end < to) {
      const shift = shifts[pairOf(bytes[end - 1] as number, bytes[end] as number)] as number;
      if (shift === 0 && this.standsAt(bytes, end - length + 1, to)) return true;
      end += shift || 1;
    }
    return false;
  }

  private standsAt(bytes: Uint8Array, at: number, to: number): boolean {
    return this.texts.some((text) => at + text.length <= to && text.every((byte, i) => bytes[at + i] === byte));
  }
}
