// JPEG, baseline, 4:2:0, with the standard's own tables (ITU T.81, annex K).

import type { Picture } from "../painter/picture.ts";
import { BitWriter } from "./jpeg-bits.ts";
import { forwardDct, scaleFactors, zigzag } from "./jpeg-transform.ts";

const bytesOf = (hex: string): number[] => (hex.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16));

/** In zigzag order, as DQT wants them. */
const lumaSteps = bytesOf(
  "100b0c0e0c0a100e0d0e1211101318281a181616183123251d283a333d3c3933383740485c4e404457453738506d51575f626768673e4d71797064785c656763",
);
const chromaSteps = [17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, ...new Array<number>(50).fill(99)];

/** How many codes there are of each length, then the symbols. */
const dcLuma = bytesOf("00010501010101010100000000000000000102030405060708090a0b");
const dcChroma = bytesOf("00030101010101010101010000000000000102030405060708090a0b");
const acLuma = bytesOf(
  "0002010303020403050504040000017d01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a" +
    "25262728292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798" +
    "999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa",
);
const acChroma = bytesOf(
  "00020102040403040705040400010277000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125f11718191a" +
    "262728292a35363738393a434445464748494a535455565758595a636465666768696a737475767778797a82838485868788898a92939495969798" +
    "999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa",
);

/** For each symbol, its code shifted left by five, and its length in the lower five bits. */
function codesOf(table: readonly number[]): Int32Array {
  const codes = new Int32Array(256);
  for (let length = 1, code = 0, at = 16; length <= 16; length++, code <<= 1) {
    for (let n = table[length - 1] as number; n > 0; n--) codes[table[at++] as number] = (code++ << 5) | length;
  }
  return codes;
}
const [dcCodes, acCodes] = [
  [codesOf(dcLuma), codesOf(dcChroma)],
  [codesOf(acLuma), codesOf(acChroma)],
] as const;

/** Quality 1 to 100, as libjpeg scales it. */
function stepsFor(base: readonly number[], quality: number): number[] {
  const scale = quality < 50 ? 5000 / quality : 200 - quality * 2;
  return base.map((step) => Math.min(255, Math.max(1, Math.floor((step * scale + 50) / 100))));
}

const factorsFor = (steps: readonly number[]) =>
  steps.reduce((factors, step, k) => {
    const at = zigzag[k] as number;
    factors[at] = 1 / (step * 8 * (scaleFactors[at >> 3] as number) * (scaleFactors[at & 7] as number));
    return factors;
  }, new Float32Array(64));

export function encodeJpeg(picture: Picture, quality: number): Uint8Array {
  const asked = Number.isFinite(quality) ? Math.min(100, Math.max(1, Math.round(quality))) : 85;
  const steps = [stepsFor(lumaSteps, asked), stepsFor(chromaSteps, asked)] as const;
  const out = new BitWriter(picture.width * picture.height + 4096);
  out.bytes([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0]);
  out.segment(0xdb, [0, ...steps[0], 1, ...steps[1]]);
  const { width, height } = picture;
  const size = [height >> 8, height & 255, width >> 8, width & 255];
  out.segment(0xc0, [8, ...size, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]);
  out.segment(0xc4, [0x00, ...dcLuma, 0x10, ...acLuma, 0x01, ...dcChroma, 0x11, ...acChroma]);
  out.segment(0xda, [3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0]);
  scan(picture, out, factorsFor(steps[0]), factorsFor(steps[1]));
  return out.finish();
}

function scan(picture: Picture, out: BitWriter, luma: Float32Array, chroma: Float32Array): void {
  const block = new Float32Array(64);
  const [ys, blues, reds] = [new Float32Array(256), new Float32Array(64), new Float32Array(64)];
  let [lastY, lastBlue, lastRed] = [0, 0, 0];
  for (let top = 0; top < picture.height; top += 16) {
    for (let left = 0; left < picture.width; left += 16) {
      readMacroblock(picture, left, top, ys, blues, reds);
      for (let quarter = 0; quarter < 4; quarter++) {
        const from = (quarter >> 1) * 128 + (quarter & 1) * 8;
        for (let y = 0; y < 8; y++) for (let x = 0; x < 8; x++) block[y * 8 + x] = ys[from + y * 16 + x] as number;
        lastY = writeBlock(block, luma, lastY, dcCodes[0], acCodes[0], out);
      }
      lastBlue = writeBlock(blues, chroma, lastBlue, dcCodes[1], acCodes[1], out);
      lastRed = writeBlock(reds, chroma, lastRed, dcCodes[1], acCodes[1], out);
    }
  }
}

/** Sixteen by sixteen pixels as brightness and, at half the size, two colour differences. Edges repeat the last pixel. */
function readMacroblock(
  { width, height, rgb }: Picture,
  left: number,
  top: number,
  ys: Float32Array,
  blues: Float32Array,
  reds: Float32Array,
): void {
  blues.fill(0);
  reds.fill(0);
  for (let y = 0, at = 0; y < 16; y++) {
    const row = Math.min(height - 1, top + y) * width;
    for (let x = 0; x < 16; x++, at++) {
      const from = (row + Math.min(width - 1, left + x)) * 3;
      const r = rgb[from] as number;
      const g = rgb[from + 1] as number;
      const b = rgb[from + 2] as number;
      ys[at] = 0.299 * r + 0.587 * g + 0.114 * b - 128;
      const half = (y >> 1) * 8 + (x >> 1);
      blues[half] = (blues[half] as number) + (b * 0.5 - r * 0.168736 - g * 0.331264) * 0.25;
      reds[half] = (reds[half] as number) + (r * 0.5 - g * 0.418688 - b * 0.081312) * 0.25;
    }
  }
}

const quantized = new Int32Array(64);

/** Returns the block's mean: the next block stores its own as a difference to it. */
function writeBlock(
  block: Float32Array,
  factors: Float32Array,
  last: number,
  dc: Int32Array,
  ac: Int32Array,
  out: BitWriter,
): number {
  forwardDct(block);
  let end = 0;
  for (let k = 0; k < 64; k++) {
    const at = zigzag[k] as number;
    const value = (block[at] as number) * (factors[at] as number);
    const whole = (value + (value < 0 ? -0.5 : 0.5)) | 0;
    quantized[k] = whole;
    if (whole) end = k;
  }
  const mean = quantized[0] as number;
  out.value(mean - last, 0, dc);
  let zeros = 0;
  for (let k = 1; k <= end; k++) {
    const value = quantized[k] as number;
    if (value === 0) {
      zeros++;
      continue;
    }
    for (; zeros > 15; zeros -= 16) out.code(ac[0xf0] as number);
    out.value(value, zeros, ac);
    zeros = 0;
  }
  if (end < 63) out.code(ac[0] as number);
  return mean;
}
