// The bits of a VP8L image, and the prefix codes in them (RFC 9649, section 3.7.2).
import { demand, Unreadable } from "./unreadable.ts";

const longestCode = 15;
/** Codes up to this length are looked up at once, from the second time on. */
const quickBits = 8;

export interface PrefixCodes {
  /** How many there are of each length, and their symbols in order. */
  readonly counts: Uint16Array;
  readonly symbols: Uint16Array;
  /** By the next bits: above twelve bits of symbol the code's length and one; 0 where it was not met yet, or is longer. */
  readonly quick: Uint16Array;
}

export class Vp8lBits {
  readonly #data: Uint8Array;
  #at = 0;
  #held = 0;
  #count = 0;

  constructor(data: Uint8Array) {
    this.#data = data;
  }

  get isOver(): boolean {
    return this.#at - (this.#count >> 3) > this.#data.length;
  }

  #fill(): void {
    for (; this.#count <= 24; this.#count += 8) this.#held |= (this.#data[this.#at++] ?? 0) << this.#count;
  }

  /** At most 24 of them. */
  number(bits: number): number {
    if (this.#count < bits) this.#fill();
    const value = this.#held & ((1 << bits) - 1);
    this.#held >>>= bits;
    this.#count -= bits;
    return value;
  }

  flag(): boolean {
    return this.number(1) === 1;
  }

  symbol(codes: PrefixCodes): number {
    if (this.#count < longestCode) this.#fill();
    const next = this.#held & ((1 << quickBits) - 1);
    let found = codes.quick[next] as number;
    if (found === 0) {
      found = this.#search(codes);
      if (found >> 12 <= quickBits + 1) codes.quick[next] = found;
    }
    const length = (found >> 12) - 1;
    this.#held >>>= length;
    this.#count -= length;
    return found & 0xfff;
  }

  #search({ counts, symbols }: PrefixCodes): number {
    if (symbols.length === 1) return (1 << 12) | (symbols[0] as number);
    for (let length = 1, code = 0, first = 0, before = 0; length <= longestCode; length++) {
      const count = counts[length] as number;
      code = (code << 1) | ((this.#held >>> (length - 1)) & 1);
      first <<= 1;
      if (code < first + count) return ((length + 1) << 12) | (symbols[before + code - first] as number);
      first += count;
      before += count;
    }
    throw new Unreadable("a code that was not defined");
  }
}

const orderOfLengths = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

export function readPrefixCodes(bits: Vp8lBits, size: number): PrefixCodes {
  const lengths = new Uint8Array(size);
  if (bits.flag()) {
    const isTwo = bits.flag();
    lengths[bits.number(bits.flag() ? 8 : 1)] = 1;
    if (isTwo) lengths[bits.number(8)] = 1;
  } else readLengths(bits, lengths);
  return codesOf(lengths);
}

function readLengths(bits: Vp8lBits, lengths: Uint8Array): void {
  const own = new Uint8Array(19);
  for (let n = 0, count = 4 + bits.number(4); n < count; n++) own[orderOfLengths[n] as number] = bits.number(3);
  const codes = codesOf(own);
  let left = bits.flag() ? 2 + bits.number(2 + 2 * bits.number(3)) : lengths.length;
  for (let at = 0, last = 8; at < lengths.length && left > 0; left--) {
    const symbol = bits.symbol(codes);
    if (symbol < 16) {
      lengths[at++] = symbol;
      if (symbol > 0) last = symbol;
    } else {
      // The last one, or none, several times.
      const times = symbol === 16 ? 3 + bits.number(2) : symbol === 17 ? 3 + bits.number(3) : 11 + bits.number(7);
      demand(at + times <= lengths.length, "codes without symbols");
      lengths.fill(symbol === 16 ? last : 0, at, at + times);
      at += times;
    }
  }
}

function codesOf(lengths: Uint8Array): PrefixCodes {
  const counts = new Uint16Array(longestCode + 1);
  const symbols = new Uint16Array(lengths.length);
  let known = 0;
  for (let length = 1; length <= longestCode; length++) {
    const before = known;
    for (let at = lengths.indexOf(length); at >= 0; at = lengths.indexOf(length, at + 1)) symbols[known++] = at;
    counts[length] = known - before;
  }
  return { counts, symbols: symbols.slice(0, known), quick: new Uint16Array(1 << quickBits) };
}
