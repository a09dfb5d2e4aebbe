// What VP8 takes a square's pixels to be before their difference is known, by those above and on the left (RFC 6386, section 12).
import { modes } from "./vp8-modes.ts";

/** A row of macroblocks of one component, with the line above it, a pixel on the left and four on the right. */
export class Vp8Plane {
  /** The pixels a macroblock has on each side. */
  readonly side: number;
  readonly stride: number;
  readonly pixels: Uint8ClampedArray;

  constructor(side: number, columns: number) {
    this.side = side;
    this.stride = side * columns + 5;
    this.pixels = new Uint8ClampedArray((side + 1) * this.stride).fill(127);
    for (let y = 1; y <= side; y++) this.pixels[y * this.stride] = 129;
  }

  startOf(column: number): number {
    return this.stride + 1 + column * this.side;
  }

  /** The last line becomes the one above the next row. */
  goDown(): void {
    const { pixels, stride } = this;
    pixels.copyWithin(0, this.side * stride);
    pixels.fill(pixels[stride - 5] as number, stride - 4, stride);
  }

  /** A square of so many pixels a side. At the picture's edges there is nothing to take the mean of. */
  predict(at: number, side: number, mode: number, hasAbove: boolean, hasLeft: boolean): void {
    const { pixels, stride } = this;
    const corner = pixels[at - stride - 1] as number;
    let mean = 0;
    for (let n = 0; n < side; n++) {
      if (hasAbove) mean += pixels[at - stride + n] as number;
      if (hasLeft) mean += pixels[at + n * stride - 1] as number;
    }
    const count = side * ((hasAbove ? 1 : 0) + (hasLeft ? 1 : 0));
    mean = count === 0 ? 128 : Math.floor((mean + count / 2) / count);
    for (let y = 0, line = at; y < side; y++, line += stride) {
      const left = pixels[line - 1] as number;
      for (let x = 0; x < side; x++) {
        const above = pixels[at - stride + x] as number;
        if (mode === modes.mean) pixels[line + x] = mean;
        else if (mode === modes.plane) pixels[line + x] = left + above - corner;
        else pixels[line + x] = mode === modes.down ? above : left;
      }
    }
  }

  /** Four by four; `right` is where the four pixels above and to the right are. */
  predictBlock(at: number, right: number, mode: number): void {
    if (mode <= modes.plane) {
      this.predict(at, 4, mode, true, true);
      return;
    }
    const { pixels, stride } = this;
    for (let n = 0; n < 4; n++) {
      edge[n] = pixels[at + (3 - n) * stride - 1] as number;
      edge[5 + n] = pixels[at - stride + n] as number;
      edge[9 + n] = pixels[right + n] as number;
    }
    edge[4] = pixels[at - stride - 1] as number;
    for (let n = 0; n < 13; n++) {
      const own = edge[n] as number;
      const before = edge[Math.max(0, n - 1)] as number;
      const after = edge[Math.min(12, n + 1)] as number;
      shades[n] = (before + 2 * own + after + 2) >> 2;
      shades[13 + n] = (before + own + 1) >> 1;
    }
    const pattern = patterns[mode - 2] as readonly number[];
    for (let n = 0; n < 16; n++) pixels[at + (n >> 2) * stride + (n & 3)] = shades[pattern[n] as number] as number;
  }
}

/** The pixels around a block, from the lowest on the left, over the corner, to the last on the right. */
const edge = new Uint8Array(13);
/** The means of three of them, around each; and of two, each with the one before. */
const shades = new Uint8Array(26);

/** For each mode, the shades of the sixteen pixels, in letters. */
const patterns = [
  "fghifghifghifghi",
  "ddddccccbbbbaaaa",
  "ghijhijkijkljklm",
  "efghdefgcdefbcde",
  "stuvefghdstucefg",
  "tuvwghijuvwkhijl",
  "refgqdrepcqdobpc",
  "qcpbpboaoannnnnn",
].map((letters) => Array.from(letters, (letter) => letter.charCodeAt(0) - 97));
