// Deflate (RFC 1951) by Huffman codes alone. Searching a grainy picture for repeats, as the platform's own compressor
// does at a level that nobody can choose, costs eight times the CPU for a sixth fewer bytes.

const END = 256;
const LONGEST = 15;
const BLOCK = 1 << 17;
/** The order in which the lengths of the codes for the code lengths are told. */
const tellingOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** A zlib stream (RFC 1950). */
export function deflate(bytes: Uint8Array): Uint8Array {
  const out = new Bits(bytes.length + (bytes.length >> 3) + 1024);
  out.put(0x0178, 16);
  for (let at = 0; at === 0 || at < bytes.length; at += BLOCK) {
    writeBlock(bytes.subarray(at, at + BLOCK), at + BLOCK >= bytes.length, out);
  }
  return out.finish(adler32(bytes));
}

function writeBlock(bytes: Uint8Array, last: boolean, out: Bits): void {
  const counts = new Uint32Array(END + 1);
  for (let i = 0; i < bytes.length; i++) counts[bytes[i] as number] = (counts[bytes[i] as number] as number) + 1;
  counts[END] = 1;
  const lengths = codeLengths(counts);
  out.put((last ? 1 : 0) | (2 << 1), 3);
  out.put(0, 5);
  out.put(0, 5);
  out.put(tellingOrder.length - 4, 4);
  for (const symbol of tellingOrder) out.put(symbol > LONGEST ? 0 : 4, 3);
  /** Every length is told in four bits, whose order is turned like every Huffman code's; the one distance is unused. */
  for (const length of lengths) out.put(turned(length, 4), 4);
  out.put(0, 4);
  const codes = codesOf(lengths);
  out.putAll(bytes, codes, lengths);
  out.put(codes[END] as number, lengths[END] as number);
}

/** Huffman's tree by two queues; flattened and tried again in the rare case that it grows too deep. */
function codeLengths(counts: Uint32Array): Uint8Array {
  const lengths = new Uint8Array(counts.length);
  const used = [...counts.keys()].filter((symbol) => counts[symbol]).sort((a, b) => count(a) - count(b));
  function count(symbol: number): number {
    return counts[symbol] as number;
  }
  if (used.length === 1) used.unshift(used[0] === 0 ? 1 : 0);
  const weights = used.map((symbol) => Math.max(1, count(symbol)));
  const parents: number[] = [];
  let [leaf, branch] = [0, used.length];
  const lightest = () => {
    const takesLeaf = leaf < used.length && (branch >= weights.length || weight(leaf) <= weight(branch));
    return takesLeaf ? leaf++ : branch++;
  };
  const weight = (node: number) => weights[node] as number;
  while (weights.length < used.length * 2 - 1) {
    const [one, other] = [lightest(), lightest()];
    parents[one] = weights.length;
    parents[other] = weights.length;
    weights.push(weight(one) + weight(other));
  }
  const depths = new Uint8Array(weights.length);
  for (let node = weights.length - 2; node >= 0; node--) depths[node] = (depths[parents[node] as number] as number) + 1;
  for (const [node, symbol] of used.entries()) lengths[symbol] = depths[node] as number;
  return lengths.some((length) => length > LONGEST) ? codeLengths(counts.map((n) => (n ? (n >> 2) + 1 : 0))) : lengths;
}

/** Canonical codes, turned so that they can be written from their lowest bit on. */
function codesOf(lengths: Uint8Array): Uint16Array {
  const codes = new Uint16Array(lengths.length);
  for (let length = 1, code = 0; length <= LONGEST; length++, code <<= 1) {
    for (const [symbol, own] of lengths.entries()) if (own === length) codes[symbol] = turned(code++, length);
  }
  return codes;
}

function turned(code: number, length: number): number {
  let result = 0;
  for (let bit = 0; bit < length; bit++) result |= ((code >> bit) & 1) << (length - 1 - bit);
  return result;
}

export function adler32(bytes: Uint8Array): number {
  let [low, high] = [1, 0];
  /** As many as fit before the sums outgrow 32 bits. */
  const stretch = 3800;
  for (let start = 0; start < bytes.length; start += stretch) {
    const end = Math.min(bytes.length, start + stretch);
    for (let i = start; i < end; i++) {
      low += bytes[i] as number;
      high += low;
    }
    low %= 65521;
    high %= 65521;
  }
  return high * 65536 + low;
}

class Bits {
  #data: Uint8Array;
  #at = 0;
  #held = 0;
  #count = 0;

  constructor(capacity: number) {
    this.#data = new Uint8Array(capacity);
  }

  put(bits: number, count: number): void {
    this.#held |= bits << this.#count;
    this.#count += count;
    for (; this.#count >= 8; this.#count -= 8) {
      this.#data[this.#at++] = this.#held;
      this.#held >>>= 8;
    }
  }

  /** The hot loop: locals instead of fields, two bytes at a time. */
  putAll(bytes: Uint8Array, codes: Uint16Array, lengths: Uint8Array): void {
    const data = this.#data;
    let [at, held, count] = [this.#at, this.#held, this.#count];
    for (let i = 0; i < bytes.length; i++) {
      const symbol = bytes[i] as number;
      held |= (codes[symbol] as number) << count;
      count += lengths[symbol] as number;
      if (count >= 16) {
        data[at] = held;
        data[at + 1] = held >>> 8;
        at += 2;
        held >>>= 16;
        count -= 16;
      }
    }
    [this.#at, this.#held, this.#count] = [at, held, count];
    this.put(0, 0);
  }

  finish(check: number): Uint8Array {
    this.put(0, (8 - this.#count) & 7);
    const whole = this.#data.slice(0, this.#at + 4);
    new DataView(whole.buffer).setUint32(this.#at, check);
    return whole;
  }
}
