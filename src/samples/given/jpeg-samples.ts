// From a block's coefficients to samples: the inverse cosine transform, at 8, 4, 2 or 1 sample a side.
import type { Component } from "./jpeg-frame.ts";

/** For each side: what each coefficient of a line adds to each sample. */
const waves = new Map([8, 4, 2, 1].map((side) => [side, waveOf(side)]));
const scaled = new Float32Array(64);
const lines = new Float32Array(64);

function waveOf(side: number): Float32Array {
  const wave = new Float32Array(side * side);
  for (let x = 0; x < side; x++) {
    for (let u = 0; u < side; u++) {
      wave[x * side + u] = (u === 0 ? Math.SQRT1_2 : 1) * 0.5 * Math.cos(((2 * x + 1) * u * Math.PI) / (2 * side));
    }
  }
  return wave;
}

/** Writes the block's samples into its component's plane. Its coefficients start at `from`. */
export function makeSamples(
  block: Int16Array,
  from: number,
  steps: Int32Array,
  { plane, columns }: Pick<Component, "plane" | "columns">,
  side: number,
  column: number,
  row: number,
): void {
  const stride = columns * side;
  const start = row * side * stride + column * side;
  let [used, waving] = [0, 0];
  for (let v = 0; v < side; v++) {
    for (let u = 0; u < side; u++) {
      const value = (block[from + v * 8 + u] as number) * (steps[v * 8 + u] as number);
      scaled[v * side + u] = value;
      if (value === 0) continue;
      used = v + 1;
      waving |= v | u;
    }
  }
  if (waving === 0) {
    const mean = byte((scaled[0] as number) / 8 + 128);
    for (let y = 0, at = start; y < side; y++, at += stride) for (let x = 0; x < side; x++) plane[at + x] = mean;
    return;
  }
  const wave = waves.get(side) as Float32Array;
  for (let v = 0; v < used; v++) {
    for (let x = 0; x < side; x++) {
      let sum = 0;
      for (let u = 0; u < side; u++) sum += (scaled[v * side + u] as number) * (wave[x * side + u] as number);
      lines[v * side + x] = sum;
    }
  }
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      let sum = 128;
      for (let v = 0; v < used; v++) sum += (lines[v * side + x] as number) * (wave[y * side + v] as number);
      plane[start + y * stride + x] = byte(sum);
    }
  }
}

function byte(value: number): number {
  return value < 0 ? 0 : value > 255 ? 255 : (value + 0.5) | 0;
}
