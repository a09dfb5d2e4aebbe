// Water: it mirrors what was painted above it, stirred by ripples, and carries the light's path.
import { between, type Chance } from "../chance.ts";
import { type Canvas, clamp01, lay, polygon } from "./canvas.ts";
import { type Color, mix } from "./color.ts";
import { noiseFrom } from "./noise.ts";
import type { Palette } from "./palette.ts";
import type { Sun } from "./sky.ts";

export function paintWater(
  canvas: Canvas,
  palette: Palette,
  sun: Sun,
  shore: number,
  calm: number,
  chance: Chance,
): void {
  const { width, height, unit, pixels } = canvas;
  const noise = noiseFrom(chance);
  const deep = mix(palette.sky[1] ?? palette.land, palette.land, 0.45);
  const depth = height - shore;
  const ripple = new Float32Array(width + 8);
  const fine = new Float32Array(width + 8);
  for (let y = shore; y < height; y++) {
    const near = (y - shore + 0.5) / depth;
    const away = 1 / (near + 0.06);
    const stepX = (away * 1.1) / unit;
    const rowY = away * 5.5;
    const fineY = away * 15;
    spread(ripple, (x) => noise((x - width / 2) * stepX, rowY));
    spread(fine, (x) => noise((x - width / 2) * stepX * 3.1 + 50, fineY));
    const sway = unit * (0.004 + 0.05 * near) * calm;
    const tintShare = 0.16 + 0.5 * near;
    const path = unit * (0.045 + 0.16 * near);
    for (let x = 0; x < width; x++) {
      const wave = (ripple[x] as number) * 0.65 + (fine[x] as number) * 0.35;
      const fromX = Math.min(width - 1, Math.max(0, Math.round(x + wave * sway * 0.5)));
      const fromY = Math.round(shore - 1 - (y - shore) * 0.92 + wave * sway);
      const from = (Math.min(shore - 1, Math.max(0, fromY)) * width + fromX) * 3;
      const at = (y * width + x) * 3;
      const share = clamp01(tintShare + wave * 0.14);
      const keep = 1 - share;
      pixels[at] = (pixels[from] as number) * keep + deep[0] * share;
      pixels[at + 1] = (pixels[from + 1] as number) * keep + deep[1] * share;
      pixels[at + 2] = (pixels[from + 2] as number) * keep + deep[2] * share;
      const off = (x - sun.x + wave * path) / path;
      if (off > -3 && off < 3) {
        const lit = clamp01(wave * 1.9 - 0.1 + 0.25 * (1 - near)) / (1 + off * off * off * off);
        if (lit > 0.01) lay(pixels, at, palette.light[0], palette.light[1], palette.light[2], lit * 0.72);
      }
    }
  }
  const haze = mix(palette.sky[4] ?? palette.light, palette.light, 0.3);
  const band = Math.max(2, Math.round(unit * 0.012));
  for (let y = shore - band; y < shore + band; y++) {
    const alpha = 0.3 * (1 - Math.abs(y - shore) / band);
    for (let x = 0; x < width; x++) lay(pixels, (y * width + x) * 3, haze[0], haze[1], haze[2], alpha);
  }
}

/** Ripples lie flat: every eighth value is computed, those between are drawn straight. */
function spread(row: Float32Array, value: (x: number) => number): void {
  let left = value(0);
  for (let x = 0; x + 8 <= row.length; x += 8) {
    const right = value(x + 8);
    for (let i = 0; i < 8; i++) row[x + i] = left + ((right - left) * i) / 8;
    left = right;
  }
}

export function paintSailboat(canvas: Canvas, palette: Palette, shore: number, chance: Chance): void {
  const { width, height, unit } = canvas;
  const size = unit * between(chance, 0.045, 0.075);
  const x = width * between(chance, 0.18, 0.82);
  const y = shore + (height - shore) * between(chance, 0.07, 0.2);
  const hull = mix(palette.land, [0, 0, 0], 0.25);
  const sail: Color = mix(palette.light, palette.sky[3] ?? palette.light, 0.25);
  const shape = (points: readonly (readonly [number, number])[], color: Color, opacity = 1) =>
    polygon(
      canvas,
      points.map(([px, py]) => [x + px * size, y + py * size] as const),
      color,
      opacity,
    );
  shape(
    [
      [0.04, -1.25],
      [0.52, -0.2],
      [0.04, -0.16],
    ],
    sail,
  );
  shape(
    [
      [-0.03, -1.1],
      [-0.03, -0.16],
      [-0.4, -0.2],
    ],
    mix(sail, palette.sky[2] ?? sail, 0.35),
  );
  shape(
    [
      [-0.55, -0.12],
      [0.62, -0.12],
      [0.4, 0.08],
      [-0.4, 0.08],
    ],
    hull,
  );
  shape(
    [
      [-0.4, 0.1],
      [0.4, 0.1],
      [0.16, 0.8],
      [-0.2, 0.8],
    ],
    hull,
    0.22,
  );
}
