// Blocks of a JPEG as its scans tell them: a baseline one at once, a progressive one in many small steps.
import { zigzag } from "../media/jpeg-transform.ts";
import type { Codes, ScanBits } from "./jpeg-codes.ts";
import { Unreadable } from "./unreadable.ts";

/** What a scan says of all its blocks. */
export interface Band {
  readonly from: number;
  readonly to: number;
  /** The bit that this scan tells, counted from the lowest; 0 in a baseline scan. */
  readonly bit: number;
  readonly isRefined: boolean;
  /** So many blocks more have nothing in this band. */
  emptyBlocks: number;
}

/** The difference of a block's mean to that of the block before. */
export function readDifference(bits: ScanBits, codes: Codes): number {
  const size = bits.symbol(codes);
  if (size > 15) throw new Unreadable("a mean of too many bits");
  return size === 0 ? 0 : bits.signed(size);
}

/** Into a block of zeros. Of its coefficients those beyond the first `side` columns and rows are passed over. */
export function readBaseline(bits: ScanBits, codes: Codes, block: Int16Array, side: number): void {
  for (let k = 1; k < 64; k++) {
    const told = bits.symbol(codes);
    const size = told & 15;
    if (size === 0 && told !== 0xf0) return;
    k += told >> 4;
    if (size === 0) continue;
    if (k > 63) throw new Unreadable("more coefficients than a block has");
    const at = zigzag[k] as number;
    if ((at & 7) < side && at >> 3 < side) block[at] = bits.signed(size);
    else bits.pass(size);
  }
}

/** Into the coefficients of a block that start at `start`. */
export function readFirst(bits: ScanBits, codes: Codes, kept: Int16Array, start: number, band: Band): void {
  if (band.emptyBlocks > 0) {
    band.emptyBlocks--;
    return;
  }
  for (let k = band.from; k <= band.to; k++) {
    const told = bits.symbol(codes);
    const [run, size] = [told >> 4, told & 15];
    if (size === 0 && run < 15) {
      band.emptyBlocks = (1 << run) - 1 + bits.bits(run);
      return;
    }
    k += run;
    if (size === 0) continue;
    if (k > 63) throw new Unreadable("more coefficients than a block has");
    kept[start + (zigzag[k] as number)] = bits.signed(size) << band.bit;
  }
}

/** One bit more of each coefficient that is there, and new ones among them. */
export function readRefinement(bits: ScanBits, codes: Codes, kept: Int16Array, start: number, band: Band): void {
  let k = band.from;
  if (band.emptyBlocks === 0) {
    for (; k <= band.to; k++) {
      const told = bits.symbol(codes);
      const [run, size] = [told >> 4, told & 15];
      if (size > 1) throw new Unreadable("a new coefficient of several bits");
      if (size === 0 && run < 15) {
        band.emptyBlocks = (1 << run) + bits.bits(run);
        break;
      }
      const value = size === 0 ? 0 : bits.bits(1) === 1 ? 1 << band.bit : -1 << band.bit;
      k = refine(bits, kept, start, band, k, run);
      if (value !== 0 && k <= band.to) kept[start + (zigzag[k] as number)] = value;
    }
  }
  if (band.emptyBlocks === 0) return;
  refine(bits, kept, start, band, k, 64);
  band.emptyBlocks--;
}

/** Passes over so many zeros and stops at the next one. What is no zero gets its bit. */
function refine(bits: ScanBits, kept: Int16Array, start: number, band: Band, from: number, zeros: number): number {
  const { to, bit } = band;
  let [k, left] = [from, zeros];
  for (; k <= to; k++) {
    const at = start + (zigzag[k] as number);
    const value = kept[at] as number;
    if (value === 0) {
      if (left === 0) break;
      left--;
    } else if (bits.bits(1) === 1) kept[at] = value + (value > 0 ? 1 << bit : -1 << bit);
  }
  return k;
}
