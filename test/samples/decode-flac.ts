// Reads FLAC back by the book (RFC 9639), as far as samples use it, and Ogg's pages; every checksum is checked on the way.

class Reader {
  at = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  bits(count: number): number {
    let value = 0;
    for (let n = 0; n < count; n++, this.at++) {
      value = value * 2 + (((this.#bytes[this.at >> 3] ?? 0) >> (7 - (this.at & 7))) & 1);
    }
    return value;
  }

  signed(count: number): number {
    const value = this.bits(count);
    return value < 2 ** (count - 1) ? value : value - 2 ** count;
  }

  zeros(): number {
    let count = 0;
    while (this.bits(1) === 0) count++;
    return count;
  }
}

export function decodeFlac(bytes: Uint8Array): Int16Array {
  const reader = new Reader(bytes);
  if (reader.bits(32) !== 0x664c6143) throw new Error("no FLAC");
  reader.bits(8);
  if (reader.bits(24) !== 34) throw new Error("no stream information");
  const blockSize = reader.bits(16);
  reader.bits(16 + 48);
  const [rate, channels, depth] = [reader.bits(20), reader.bits(3), reader.bits(5)];
  if (rate !== 16_000 || channels !== 0 || depth !== 15) throw new Error("another sound");
  const samples = new Int16Array(reader.bits(36));
  reader.at += 128;
  for (let at = 0, number = 0; at < samples.length; number++) {
    const start = reader.at / 8;
    if (reader.bits(16) !== 0xfff8) throw new Error("no frame");
    const isWhole = reader.bits(4) === 12;
    if (reader.bits(12) !== 0x508) throw new Error("another frame");
    const first = reader.bits(8);
    if ((first < 0x80 ? first : ((first & 31) << 6) | (reader.bits(8) & 63)) !== number)
      throw new Error("out of order");
    const size = isWhole ? blockSize : reader.bits(16) + 1;
    const headEnd = reader.at / 8;
    if (reader.bits(8) !== checksum(bytes.subarray(start, headEnd), 0x07, 8)) throw new Error("a head is broken");
    readFrame(reader, samples.subarray(at, at + size));
    reader.at = Math.ceil(reader.at / 8) * 8;
    if (reader.bits(16) !== checksum(bytes.subarray(start, reader.at / 8 - 2), 0x8005, 16)) throw new Error("broken");
    at += size;
  }
  if (reader.at / 8 !== bytes.length) throw new Error("it goes on");
  return samples;
}

function readFrame(reader: Reader, samples: Int16Array): void {
  const order = (reader.bits(8) >> 1) - 8;
  for (let i = 0; i < order; i++) samples[i] = reader.signed(16);
  if (reader.bits(6) !== 0) throw new Error("another code");
  const lower = reader.bits(4);
  for (let i = order; i < samples.length; i++) {
    const value = reader.zeros() * 2 ** lower + reader.bits(lower);
    const residual = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    samples[i] = residual + (order === 2 ? 2 * (samples[i - 1] ?? 0) - (samples[i - 2] ?? 0) : 0);
  }
}

/** Of each page its one packet. */
export function packetsOf(ogg: Uint8Array): Uint8Array[] {
  const packets: Uint8Array[] = [];
  for (let at = 0; at < ogg.length; ) {
    const view = new DataView(ogg.buffer, ogg.byteOffset + at);
    if (view.getUint32(0) !== 0x4f676753 || view.getUint32(18, true) !== packets.length) throw new Error("no page");
    const segments = ogg.subarray(at + 27, at + 27 + view.getUint8(26));
    const length = segments.reduce((sum, segment) => sum + segment, 0);
    const page = ogg.slice(at, at + 27 + segments.length + length);
    page.fill(0, 22, 26);
    if (checksum(page, 0x04c11db7, 32) !== view.getUint32(22, true)) throw new Error("a page is broken");
    const isLast = at + page.length === ogg.length;
    if (view.getUint8(5) !== (packets.length === 0 ? 2 : isLast ? 4 : 0)) throw new Error("no beginning or no end");
    packets.push(page.subarray(27 + segments.length));
    at += page.length;
  }
  return packets;
}

function checksum(bytes: Uint8Array, polynomial: number, width: number): number {
  const shift = 32 - width;
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) sum = sum < 0 ? (sum << 1) ^ (polynomial << shift) : sum << 1;
  }
  return sum >>> shift;
}
