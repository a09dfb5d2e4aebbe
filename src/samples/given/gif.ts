// GIF: the first of its pictures, in the colours of its palette.
import type { Picture } from "../painter/picture.ts";
import { Shrinking } from "./shrinking.ts";
import { demand } from "./unreadable.ts";

const longestCode = 12;
const noCode = -1;
/** More than this is a trap: codes stand for up to 4096 pixels each. */
const mostPixels = 16 * 1024 * 1024;

export function decodeGif(data: Uint8Array): Picture {
  const word = (at: number) => (data[at] ?? 0) + (data[at + 1] ?? 0) * 256;
  const tableAt = (at: number, flags: number): [table: Uint8Array | undefined, next: number] => {
    const bytes = flags & 0x80 ? 3 * (2 << (flags & 7)) : 0;
    return [bytes > 0 ? data.subarray(at, at + bytes) : undefined, at + bytes];
  };
  const [common, first] = tableAt(13, data[10] ?? 0);
  for (let at = first; at < data.length; ) {
    const kind = data[at];
    if (kind === 0x21) at = endOfBlocks(data, at + 2);
    else {
      demand(kind === 0x2c, "no picture in it");
      const [width, height, flags] = [word(at + 5), word(at + 7), data[at + 9] ?? 0];
      const [own, from] = tableAt(at + 10, flags);
      const table = own ?? common;
      demand(table !== undefined && width > 0 && height > 0 && width * height <= mostPixels, "nothing to be read");
      const bytes = blocksOf(data, from + 1);
      // The rows of an interlaced one come in another order: those of its first pass are an eighth of all.
      const size = flags & 0x40 ? Math.ceil(height / 8) : height;
      const square = flags & 0x40 ? 8 : 1;
      return readPixels(bytes, data[from] ?? 0, { width, height: size, square, table });
    }
  }
  demand(false, "no picture in it");
}

/** Data comes in blocks of at most 255 bytes; an empty one ends them. What follows starts here. */
function endOfBlocks(data: Uint8Array, from: number): number {
  let at = from;
  for (let length = data[at] ?? 0; length > 0; length = data[at] ?? 0) at += 1 + length;
  return at + 1;
}

function blocksOf(data: Uint8Array, from: number): Uint8Array {
  const end = Math.min(endOfBlocks(data, from), data.length);
  const bytes = new Uint8Array(Math.max(0, end - from));
  let size = 0;
  for (let at = from; at < end; at += 1 + (data[at] as number)) {
    const block = data.subarray(at + 1, at + 1 + (data[at] as number));
    bytes.set(block, size);
    size += block.length;
  }
  return bytes.subarray(0, size);
}

interface Shape {
  readonly width: number;
  readonly height: number;
  /** Of so many columns one is taken. */
  readonly square: number;
  readonly table: Uint8Array;
}

/** LZW: a code stands for a sequence of pixels, and is one that was seen and one pixel more. */
function readPixels(bytes: Uint8Array, leastBits: number, { width, height, square, table }: Shape): Picture {
  demand(leastBits >= 2 && leastBits <= 8, "no known codes");
  const across = Math.ceil(width / square);
  const shrinking = new Shrinking(across, height);
  const row = new Uint8Array(across * 3);
  const [before, last] = [new Int16Array(1 << longestCode), new Uint8Array(1 << longestCode)];
  const sequence = new Uint8Array(1 << longestCode);
  const [clear, end] = [1 << leastBits, (1 << leastBits) + 1];
  let [next, bits, previous, column] = [end + 1, leastBits + 1, noCode, 0];
  let [held, count] = [0, 0];
  const put = (index: number) => {
    if (column % square === 0) {
      const out = (column / square) * 3;
      for (let n = 0; n < 3; n++) row[out + n] = table[index * 3 + n] ?? 0;
    }
    if (++column < width) return;
    shrinking.add(row);
    column = 0;
  };
  for (const byte of bytes) {
    held |= byte << count;
    count += 8;
    while (count >= bits) {
      const code = held & ((1 << bits) - 1);
      held >>>= bits;
      count -= bits;
      if (code === end || shrinking.isFull) return shrinking.finish();
      if (code === clear) {
        [next, bits, previous] = [end + 1, leastBits + 1, noCode];
        continue;
      }
      if (code > next || (code === next && previous === noCode)) return shrinking.finish();
      let length = 0;
      for (let at = code === next ? previous : code; at !== noCode; at = at < clear ? noCode : (before[at] as number)) {
        sequence[length++] = at < clear ? at : (last[at] as number);
      }
      const firstPixel = sequence[length - 1] as number;
      while (length > 0) put(sequence[--length] as number);
      if (code === next) put(firstPixel);
      if (previous !== noCode && next < 1 << longestCode) {
        before[next] = previous;
        last[next++] = firstPixel;
        if (next === 1 << bits && bits < longestCode) bits++;
      }
      previous = code;
    }
  }
  return shrinking.finish();
}
