// Smooth noise: what makes ridges, clouds, ripples and silk look grown instead of drawn.
import type { Chance } from "../chance.ts";

export type Noise = (x: number, y: number) => number;

const SIZE = 256;

/** Gradient noise, about -1 to 1. */
export function noiseFrom(chance: Chance): Noise {
  const order = new Uint8Array(SIZE * 2);
  for (let i = 0; i < SIZE; i++) order[i] = i;
  for (let i = SIZE - 1; i > 0; i--) {
    const j = Math.floor(chance() * (i + 1));
    const held = order[i] as number;
    order[i] = order[j] as number;
    order[j] = held;
  }
  order.copyWithin(SIZE, 0, SIZE);
  const slopeX = new Float32Array(SIZE);
  const slopeY = new Float32Array(SIZE);
  for (let i = 0; i < SIZE; i++) {
    const angle = chance() * Math.PI * 2;
    slopeX[i] = Math.cos(angle) * 1.5;
    slopeY[i] = Math.sin(angle) * 1.5;
  }
  const corner = (cellX: number, cellY: number, dx: number, dy: number) => {
    const at = order[(order[cellX & 255] as number) + (cellY & 255)] as number;
    return (slopeX[at] as number) * dx + (slopeY[at] as number) * dy;
  };
  return (x, y) => {
    const cellX = Math.floor(x);
    const cellY = Math.floor(y);
    const dx = x - cellX;
    const dy = y - cellY;
    const u = dx * dx * dx * (dx * (dx * 6 - 15) + 10);
    const v = dy * dy * dy * (dy * (dy * 6 - 15) + 10);
    const a = corner(cellX, cellY, dx, dy);
    const b = corner(cellX + 1, cellY, dx - 1, dy);
    const c = corner(cellX, cellY + 1, dx, dy - 1);
    const d = corner(cellX + 1, cellY + 1, dx - 1, dy - 1);
    return a + u * (b - a) + v * (c - a + u * (a - b - c + d));
  };
}

/** Octaves of noise, each finer and fainter. */
export function fractal(noise: Noise, x: number, y: number, octaves: number, gain = 0.5): number {
  let sum = 0;
  let weight = 1;
  let scale = 1;
  for (let i = 0; i < octaves; i++) {
    sum += weight * noise(x * scale + i * 17.3, y * scale - i * 9.1);
    weight *= gain;
    scale *= 2.03;
  }
  return sum;
}

/** Octaves with sharp crests, about 0 to 1: mountains. */
export function crested(noise: Noise, x: number, y: number, octaves: number): number {
  let sum = 0;
  let weight = 0.55;
  let scale = 1;
  let above = 1;
  for (let i = 0; i < octaves; i++) {
    const crest = (1 - Math.abs(noise(x * scale + i * 7.7, y * scale + i * 3.1))) ** 2;
    sum += crest * weight * above;
    above = crest;
    weight *= 0.5;
    scale *= 2.1;
  }
  return sum;
}
