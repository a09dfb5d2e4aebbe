// The bits of a JPEG's scan, and the Huffman codes in them.
import { demand, Unreadable } from "./unreadable.ts";

/** Codes up to this length are looked up at once. Most are shorter. */
const quickBits = 9;
const longestCode = 16;

export interface Codes {
  /** By the next bits: the code's length shifted left by eight, and its symbol; 0 where the code is longer. */
  readonly quick: Uint16Array;
  readonly symbols: Uint8Array;
  /** For each length, the code after its last one, and what is added to a code to find its symbol. */
  readonly ends: Int32Array;
  readonly offsets: Int32Array;
}

/** `counts` says how many codes there are of each length, from 1 to 16 bits. */
export function readCodes(counts: Uint8Array, symbols: Uint8Array): Codes {
  const quick = new Uint16Array(1 << quickBits);
  const [ends, offsets] = [new Int32Array(longestCode + 1), new Int32Array(longestCode + 1)];
  let [code, used] = [0, 0];
  for (let length = 1; length <= longestCode; length++) {
    offsets[length] = used - code;
    for (let left = counts[length - 1] as number; left > 0; left--, code++, used++) {
      if (length > quickBits) continue;
      const from = code << (quickBits - length);
      quick.fill((length << 8) | (symbols[used] as number), from, from + (1 << (quickBits - length)));
    }
    demand(code <= 1 << length, "more codes than their length allows");
    ends[length] = code;
    code <<= 1;
  }
  return { quick, symbols, ends, offsets };
}

export class ScanBits {
  /** Where the next byte is read. */
  at: number;
  readonly #data: Uint8Array;
  #held = 0;
  #count = 0;
  /** Zeros that stand in for what is missing. */
  #missing = 0;

  constructor(data: Uint8Array, at: number) {
    this.#data = data;
    this.at = at;
  }

  /** More was read than there is before the next marker. */
  get isOver(): boolean {
    return this.#missing > this.#count;
  }

  #fill(): void {
    const data = this.#data;
    let [at, held, count] = [this.at, this.#held, this.#count];
    for (; count <= 24; count += 8) {
      const byte = at < data.length ? (data[at] as number) : 0xff;
      if (byte !== 0xff) {
        held = (held << 8) | byte;
        at++;
      } else if (data[at + 1] === 0) {
        held = (held << 8) | 0xff;
        at += 2;
      } else {
        held <<= 8;
        this.#missing += 8;
      }
    }
    this.at = at;
    this.#held = held;
    this.#count = count;
  }

  pass(count: number): void {
    if (this.#count < count) this.#fill();
    this.#count -= count;
  }

  bits(count: number): number {
    if (count === 0) return 0;
    if (this.#count < count) this.#fill();
    this.#count -= count;
    return (this.#held >>> this.#count) & ((1 << count) - 1);
  }

  /** A value of so many bits: the lower half of them stands for negative ones. */
  signed(size: number): number {
    const value = this.bits(size);
    return value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
  }

  symbol({ quick, symbols, ends, offsets }: Codes): number {
    if (this.#count < longestCode) this.#fill();
    const found = quick[(this.#held >>> (this.#count - quickBits)) & ((1 << quickBits) - 1)] as number;
    if (found !== 0) {
      this.#count -= found >> 8;
      return found & 255;
    }
    for (let length = quickBits + 1; length <= longestCode; length++) {
      const code = (this.#held >>> (this.#count - length)) & ((1 << length) - 1);
      if (code >= (ends[length] as number)) continue;
      this.#count -= length;
      return symbols[code + (offsets[length] as number)] as number;
    }
    throw new Unreadable("a code that was not defined");
  }

  /** Goes on behind the next restart marker; false where there is none. */
  restart(): boolean {
    this.#held = 0;
    this.#count = 0;
    this.#missing = 0;
    this.at = nextMarker(this.#data, this.at);
    const marker = this.#data[this.at + 1] ?? 0;
    if (marker < 0xd0 || marker > 0xd7) return false;
    this.at += 2;
    return true;
  }
}

/** Where the next marker starts, be it a restart's; the data's end where there is none. */
export function nextMarker(data: Uint8Array, from: number): number {
  for (let at = data.indexOf(0xff, from); at >= 0; at = data.indexOf(0xff, at + 1)) {
    const next = data[at + 1] ?? 0;
    if (next !== 0 && next !== 0xff) return at;
  }
  return data.length;
}
