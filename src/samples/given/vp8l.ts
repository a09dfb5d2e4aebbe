// VP8L, which a WebP without loss is (RFC 9649, section 3). Its pixels stand in memory whole, with 32 bits each, until they are shown.
import type { Picture } from "../painter/picture.ts";
import { Shrinking } from "./shrinking.ts";
import { demand, webpPixels } from "./unreadable.ts";
import { Vp8lBits } from "./vp8l-codes.ts";
import { readPixels, readSquares } from "./vp8l-pixels.ts";
import { addBefore, addColors, addGreen, addGuesses, addShares } from "./vp8l-transforms.ts";

export function decodeVp8l(data: Uint8Array): Picture {
  const bits = new Vp8lBits(data);
  demand(bits.number(8) === 0x2f, "no picture in it");
  const [width, height] = [bits.number(14) + 1, bits.number(14) + 1];
  demand(width * height <= webpPixels, "too many pixels");
  demand(bits.number(4) < 2, "a coding that is not read here");
  const shrinking = new Shrinking(width, height);
  const pixels = readTransformed(bits, width, height);
  const row = new Uint8Array(width * 3);
  for (let at = 0; at + width <= pixels.length; at += width) {
    for (let x = 0; x < width; x++) {
      const pixel = pixels[at + x] as number;
      const alpha = pixel >>> 24;
      for (let n = 0; n < 3; n++) row[x * 3 + n] = (((pixel >> (16 - 8 * n)) & 255) * alpha) / 255 + 255 - alpha;
    }
    shrinking.add(row);
  }
  return shrinking.finish();
}

/** Each transform is said before what it changes, and undone behind it: the last one first. */
function readTransformed(bits: Vp8lBits, fullWidth: number, height: number): Uint32Array {
  const undo: ((pixels: Uint32Array) => Uint32Array | undefined)[] = [];
  const known = new Set<number>();
  let width = fullWidth;
  while (bits.flag()) {
    const kind = bits.number(2);
    const across = width;
    demand(!known.has(kind), "a transform twice");
    known.add(kind);
    if (kind === 2) undo.push((pixels) => void addGreen(pixels));
    else if (kind === 3) {
      const count = bits.number(8) + 1;
      const colors = addBefore(readPixels(bits, count, 1));
      const shift = count > 16 ? 0 : count > 4 ? 1 : count > 2 ? 2 : 3;
      undo.push((pixels) => addColors(pixels, across, colors, shift));
      width = Math.ceil(width / 2 ** shift);
    } else {
      const squares = readSquares(bits, width, height);
      const add = kind === 0 ? addGuesses : addShares;
      undo.push((pixels) => void add(pixels, across, squares));
    }
  }
  return undo.reduceRight((pixels, change) => change(pixels) ?? pixels, readPixels(bits, width, height, true));
}
