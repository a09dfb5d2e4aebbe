// From paint to bytes: scaled up where it was painted smaller, darker at the corners, with soft grain.
import type { Chance } from "../chance.ts";
import type { Canvas } from "./canvas.ts";

/** Grain repeats along a row, never down a column: this is invisible, and PNG compresses it well. */
const GRAIN = 128;

const byte = (value: number): number => (value < 0 ? 0 : value > 255 ? 255 : value);

export function develop(canvas: Canvas, width: number, height: number, chance: Chance): Uint8Array {
  const rgb = new Uint8Array(width * height * 3);
  const grain = new Float32Array(GRAIN * 8);
  for (let i = 0; i < grain.length; i++) grain[i] = (chance() + chance() - 1) * 2.2 + 0.5;
  const across = columnsOf(canvas.width, width);
  const source = new Float32Array((canvas.width + 1) * 3);
  const scaleY = canvas.height / height;
  for (let y = 0; y < height; y++) {
    blendRows(canvas, Math.min(canvas.height - 1, Math.max(0, (y + 0.5) * scaleY - 0.5)), source);
    const dark = 1 - 0.3 * ((y + 0.5) / height - 0.5) ** 2;
    writeRow(source, across, dark, grain, Math.floor(chance() * grain.length), rgb, y * width * 3);
  }
  return rgb;
}

interface Columns {
  /** Where each column's left neighbour starts, and how far it lies towards the right one. */
  readonly from: Int32Array;
  readonly part: Float32Array;
  readonly dark: Float32Array;
}

function columnsOf(painted: number, width: number): Columns {
  const columns = { from: new Int32Array(width), part: new Float32Array(width), dark: new Float32Array(width) };
  for (let x = 0; x < width; x++) {
    const at = Math.min(painted - 1, Math.max(0, ((x + 0.5) * painted) / width - 0.5));
    columns.from[x] = Math.floor(at) * 3;
    columns.part[x] = at - Math.floor(at);
    columns.dark[x] = 0.3 * ((x + 0.5) / width - 0.5) ** 2;
  }
  return columns;
}

function blendRows({ width, height, pixels }: Canvas, at: number, into: Float32Array): void {
  const upper = Math.floor(at);
  const share = at - upper;
  const keep = 1 - share;
  const length = width * 3;
  let a = upper * length;
  let b = Math.min(height - 1, upper + 1) * length;
  for (let i = 0; i < length; i++, a++, b++) into[i] = (pixels[a] as number) * keep + (pixels[b] as number) * share;
}

function writeRow(
  source: Float32Array,
  { from, part, dark }: Columns,
  light: number,
  grain: Float32Array,
  shift: number,
  rgb: Uint8Array,
  start: number,
): void {
  const mask = grain.length - 1;
  let out = start;
  for (let x = 0; x < from.length; x++, out += 3) {
    const i = from[x] as number;
    const right = part[x] as number;
    const lit = light - (dark[x] as number);
    const left = (1 - right) * lit;
    const speck = grain[((x & (GRAIN - 1)) + shift) & mask] as number;
    const share = right * lit;
    rgb[out] = byte((source[i] as number) * left + (source[i + 3] as number) * share + speck);
    rgb[out + 1] = byte((source[i + 1] as number) * left + (source[i + 4] as number) * share + speck);
    rgb[out + 2] = byte((source[i + 2] as number) * left + (source[i + 5] as number) * share + speck);
  }
}
