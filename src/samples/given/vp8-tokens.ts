// The coefficients of VP8's macroblocks (RFC 6386, section 13).
import type { Vp8Bits } from "./vp8-bits.ts";
import type { Vp8Frame } from "./vp8-frame.ts";
import { modes, type Vp8Modes } from "./vp8-modes.ts";
import { spreadMeans } from "./vp8-transform.ts";

const zigzag = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];
/** A token has eleven chances, for each of three cases: by its neighbours, or by the value before it. */
const [perToken, perBand, perKind] = [11, 3 * 11, 8 * 3 * 11];
/** For each coefficient, where the chances of its band start; behind the last one nothing is read any more. */
const bands = [0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0].map((band) => band * perBand);
/** Those of the bits of large values, from the highest. */
const valueChances = [
  [173, 148, 140],
  [176, 155, 140, 135],
  [180, 157, 141, 134, 130],
  [254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129],
];

export class Vp8Tokens {
  readonly #frame: Vp8Frame;
  /** Whether the block above, and the one on the left, had coefficients: four of luma, two and two of chroma, one of means. */
  readonly #above: Uint8Array;
  readonly #left = new Uint8Array(9);
  /** Sixteen of luma's blocks, four and four of chroma's, and luma's means. */
  readonly coefficients = new Int32Array(25 * 16);

  constructor(frame: Vp8Frame) {
    this.#frame = frame;
    this.#above = new Uint8Array(frame.columns * 9);
  }

  /** Those of an empty macroblock stay as they are. */
  read(row: number, column: number, { isEmpty, luma, segment }: Vp8Modes): void {
    const { parts, steps } = this.#frame;
    const [bits, step] = [parts[row % parts.length] as Vp8Bits, steps[segment] as readonly number[]];
    const [above, left] = [this.#above.subarray(column * 9), this.#left];
    const hasMeans = luma !== modes.byBlocks;
    if (column === 0) left.fill(0);
    if (isEmpty) {
      for (const neighbours of [above, left]) neighbours.fill(0, 0, hasMeans ? 9 : 8);
      return;
    }
    this.coefficients.fill(0);
    const readSquare = (kind: number, block: number, side: number, neighbour: number, first = 0) => {
      for (let n = 0; n < side * side; n++) {
        const [x, y] = [neighbour + (n % side), neighbour + Math.floor(n / side)];
        const near = (above[x] as number) + (left[y] as number);
        const end = this.#readBlock(bits, kind, near, (block + n) * 16, first, step);
        above[x] = left[y] = end > first ? 1 : 0;
      }
    };
    if (hasMeans) {
      readSquare(1, 24, 1, 8);
      spreadMeans(this.coefficients, 24 * 16);
    }
    readSquare(hasMeans ? 0 : 3, 0, 4, 0, hasMeans ? 1 : 0);
    readSquare(2, 16, 2, 4);
    readSquare(2, 20, 2, 6);
  }

  /** Where the block's coefficients end. Those of its kind have steps of their own, at first and behind it. */
  #readBlock(
    bits: Vp8Bits,
    kind: number,
    near: number,
    start: number,
    first: number,
    steps: readonly number[],
  ): number {
    const { chances } = this.#frame;
    const [mean, other] = [steps[(kind % 3) * 2] as number, steps[(kind % 3) * 2 + 1] as number];
    const bandAt = (n: number) => kind * perKind + (bands[n] as number);
    let at = bandAt(first) + near * perToken;
    for (let n = first; n < 16; ) {
      if (bits.bit(chances[at] as number) === 0) return n;
      while (bits.bit(chances[at + 1] as number) === 0) {
        if (++n === 16) return n;
        at = bandAt(n);
      }
      const value = readValue(bits, chances, at);
      const signed = bits.bit(128) === 1 ? -value : value;
      this.coefficients[start + (zigzag[n] as number)] = signed * (n === 0 ? mean : other);
      at = bandAt(++n) + (value === 1 ? perToken : 2 * perToken);
    }
    return 16;
  }
}

function readValue(bits: Vp8Bits, chances: Uint8Array, at: number): number {
  const node = (n: number) => bits.bit(chances[at + n] as number);
  if (node(2) === 0) return 1;
  if (node(3) === 0) return node(4) === 0 ? 2 : 3 + node(5);
  if (node(6) === 0) return node(7) === 0 ? 5 + bits.bit(159) : 7 + 2 * bits.bit(165) + bits.bit(145);
  const high = node(8);
  const size = 2 * high + node(9 + high);
  let value = 0;
  for (const chance of valueChances[size] as number[]) value = value * 2 + bits.bit(chance);
  return value + 3 + (8 << size);
}
