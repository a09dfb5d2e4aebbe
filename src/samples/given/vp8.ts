// A VP8 key frame, which a lossy WebP is: read by rows of macroblocks, of which one is held at a time (RFC 6386).
import type { Picture } from "../painter/picture.ts";
import { Shrinking } from "./shrinking.ts";
import { readVp8Frame, type Vp8Frame } from "./vp8-frame.ts";
import { modes, Vp8Modes } from "./vp8-modes.ts";
import { Vp8Plane } from "./vp8-prediction.ts";
import { Vp8Tokens } from "./vp8-tokens.ts";
import { addBlock } from "./vp8-transform.ts";

type Planes = readonly [luma: Vp8Plane, blue: Vp8Plane, red: Vp8Plane];

export function decodeVp8(data: Uint8Array): Picture {
  const frame = readVp8Frame(data);
  const { width, height, columns, rows } = frame;
  const shrinking = new Shrinking(width, height);
  const planes: Planes = [new Vp8Plane(16, columns), new Vp8Plane(8, columns), new Vp8Plane(8, columns)];
  const [mode, tokens] = [new Vp8Modes(frame), new Vp8Tokens(frame)];
  const line = new Uint8Array(width * 3);
  for (let row = 0; row < rows && !isOver(frame, row); row++) {
    for (let column = 0; column < columns; column++) {
      mode.read(column);
      tokens.read(row, column, mode);
      addMacroblock(planes, mode, tokens.coefficients, row, column);
    }
    for (let y = 0; y < 16 && row * 16 + y < height; y++) {
      color(planes, y, line);
      shrinking.add(line);
    }
    for (const plane of planes) plane.goDown();
  }
  return shrinking.finish();
}

/** What is cut short ends where it ends. */
const isOver = ({ bits, parts }: Vp8Frame, row: number) => bits.isOver || parts[row % parts.length]?.isOver;

function addMacroblock(planes: Planes, mode: Vp8Modes, coefficients: Int32Array, row: number, column: number): void {
  for (const [n, plane] of planes.entries()) {
    const { side, stride, pixels } = plane;
    const start = plane.startOf(column);
    const isByBlocks = n === 0 && mode.luma === modes.byBlocks;
    if (!isByBlocks) plane.predict(start, side, n === 0 ? mode.luma : mode.chroma, row > 0, column > 0);
    const [across, first] = [side / 4, n === 0 ? 0 : 12 + 4 * n];
    for (let block = 0; block < across * across; block++) {
      const x = block % across;
      const at = start + Math.floor(block / across) * 4 * stride + x * 4;
      // To the right of the last column lies what is above the next macroblock, for each of the blocks.
      if (isByBlocks) plane.predictBlock(at, (x === 3 ? start + 12 : at) - stride + 4, mode.blocks[block] as number);
      if (!mode.isEmpty) addBlock(coefficients, (first + block) * 16, pixels, at, stride);
    }
  }
}

/** A line of pixels; of chroma there is one for four of them. */
function color([luma, blue, red]: Planes, y: number, into: Uint8Array): void {
  const rgb = new Uint8ClampedArray(into.buffer);
  const from = luma.startOf(0) + y * luma.stride;
  const half = blue.startOf(0) + (y >> 1) * blue.stride;
  for (let x = 0, out = 0; out < rgb.length; x++, out += 3) {
    const light = 1.164 * ((luma.pixels[from + x] as number) - 16);
    const u = (blue.pixels[half + (x >> 1)] as number) - 128;
    const v = (red.pixels[half + (x >> 1)] as number) - 128;
    rgb[out] = light + 1.596 * v;
    rgb[out + 1] = light - 0.813 * v - 0.391 * u;
    rgb[out + 2] = light + 2.018 * u;
  }
}
