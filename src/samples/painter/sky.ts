// The sky: its gradient, sun or moon, stars, clouds and northern lights.
import { between, type Chance } from "../chance.ts";
import { type Canvas, clamp01, disc, halo, lay, smooth } from "./canvas.ts";
import { type Color, mix, ramp } from "./color.ts";
import { fieldOf } from "./field.ts";
import { fractal, noiseFrom } from "./noise.ts";
import type { Palette } from "./palette.ts";

export interface Sun {
  readonly x: number;
  readonly y: number;
  readonly radius: number;
}

/** The gradient ends at the horizon; a wide and a narrow glow lie round the light. */
export function paintSky(canvas: Canvas, palette: Palette, sun: Sun, horizon: number): void {
  const { width, height, unit, pixels } = canvas;
  const table = ramp(palette.sky, Math.max(2, Math.ceil(horizon)));
  const [r, g, b] = palette.light;
  const wide = (palette.moon ? 14 : 5) / (unit * unit);
  const narrow = 90 / (unit * unit);
  const strength = palette.moon ? 0.25 : 0.5;
  for (let y = 0, i = 0; y < height; y++) {
    const at = Math.min(table.length / 3 - 1, y) * 3;
    const skyR = table[at] as number;
    const skyG = table[at + 1] as number;
    const skyB = table[at + 2] as number;
    const dy = (y - sun.y) ** 2 * 1.4;
    for (let x = 0; x < width; x++, i += 3) {
      const distance = (x - sun.x) ** 2 + dy;
      const far = 1 / (1 + distance * wide);
      const alpha = strength * far * far + 0.4 / (1 + distance * narrow);
      pixels[i] = skyR + (r - skyR) * alpha;
      pixels[i + 1] = skyG + (g - skyG) * alpha;
      pixels[i + 2] = skyB + (b - skyB) * alpha;
    }
  }
}

export function paintStars(canvas: Canvas, amount: number, horizon: number, chance: Chance): void {
  const { width, height, unit, pixels } = canvas;
  const count = Math.round(((width * horizon) / 1500) * amount);
  for (let n = 0; n < count; n++) {
    const [x, y] = [chance() * width, chance() ** 1.3 * horizon];
    const bright = chance() ** 5;
    const fade = (1 - (y / horizon) ** 2) * Math.min(1, 0.4 + amount);
    const warm = chance();
    const color: Color = [215 + 40 * warm, 232, 255 - 35 * warm];
    const at = (Math.floor(y) * width + Math.floor(x)) * 3;
    if (y < height) lay(pixels, at, color[0], color[1], color[2], fade * (0.2 + 0.5 * chance()));
    if (bright > 0.3) {
      disc(canvas, x, y, unit * 0.0012 * (0.6 + bright), color, fade * (0.5 + 0.5 * bright));
      halo(canvas, x, y, unit * 0.009 * (0.5 + bright), color, fade * 0.35 * bright);
    }
  }
}

export function paintSun(canvas: Canvas, palette: Palette, sun: Sun, chance: Chance): void {
  const { x, y, radius } = sun;
  if (!palette.moon) {
    halo(canvas, x, y, radius * 3.2, palette.light, 0.55);
    disc(canvas, x, y, radius, mix(palette.light, [255, 255, 255], 0.4), 0.96);
    return;
  }
  halo(canvas, x, y, radius * 4, palette.light, 0.3);
  disc(canvas, x, y, radius, palette.light, 0.97);
  const seas = noiseFrom(chance);
  const grey = mix(palette.light, palette.sky[2] ?? palette.land, 0.35);
  for (let n = 0; n < 9; n++) {
    const [angle, away, size] = [chance() * 6.3, Math.sqrt(chance()) * radius * 0.75, between(chance, 0.1, 0.3)];
    const soft = 0.75 + 0.25 * seas(n, 0.5);
    halo(canvas, x + Math.cos(angle) * away, y + Math.sin(angle) * away, radius * size, grey, 0.6 * soft);
  }
}

/** Long thin banks, brighter where they are near the light. */
export function paintClouds(canvas: Canvas, palette: Palette, sun: Sun, horizon: number, chance: Chance): void {
  const { width, unit, pixels } = canvas;
  const noise = noiseFrom(chance);
  const cover = between(chance, -0.05, 0.3) + palette.stars * 0.15;
  const rows = Math.min(canvas.height, Math.ceil(horizon));
  const field = fieldOf(width, rows, (x, y) => {
    const flat = 2 + (3.5 * y) / horizon;
    const bend = noise((x / unit) * 1.1 + 40, (y / unit) * 2) * 0.5;
    return fractal(noise, (x / unit) * 1.5 + bend, (y / unit) * 2.1 * flat, 5);
  });
  const bright = mix(palette.sky[4] ?? palette.light, palette.light, 0.6);
  const shade = mix(palette.sky[2] ?? palette.light, palette.sky[3] ?? palette.light, 0.35);
  const row = new Float32Array(width);
  for (let y = 0; y < rows; y++) {
    field.row(y, row);
    const fade = (palette.moon ? 0.3 : 0.62) * smooth(0, 0.25, y / horizon + 0.12) * smooth(1.02, 0.72, y / horizon);
    for (let x = 0; x < width; x++) {
      const thick = clamp01(((row[x] as number) - cover) * 1.7);
      if (thick <= 0) continue;
      const near = 1 / (1 + ((x - sun.x) ** 2 + (y - sun.y) ** 2 * 2) / (unit * unit * 0.22));
      const lit = clamp01(0.25 + near - thick * 0.35);
      const r = shade[0] + (bright[0] - shade[0]) * lit;
      const g = shade[1] + (bright[1] - shade[1]) * lit;
      const b = shade[2] + (bright[2] - shade[2]) * lit;
      lay(pixels, (y * width + x) * 3, r, g, b, fade * thick * (2 - thick));
    }
  }
}

/** Curtains: sharp below, fading upwards, folded by noise. */
export function paintAurora(canvas: Canvas, palette: Palette, horizon: number, chance: Chance): void {
  const { width, unit, pixels } = canvas;
  const noise = noiseFrom(chance);
  const lower = mix(palette.accent, palette.light, 0.25);
  for (let curtain = 0; curtain < 3; curtain++) {
    const base = horizon * (0.48 + 0.15 * curtain);
    const upper = mix(palette.accent, [150, 90, 230], 0.35 + 0.25 * curtain);
    for (let x = 0; x < width; x++) {
      const u = x / unit;
      const foot =
        base + noise(u * 1.3 + curtain * 9, curtain * 3.3) * horizon * 0.22 + noise(u * 5, curtain) * unit * 0.02;
      const tall = horizon * (0.5 + 0.25 * noise(u * 2.2, 7 + curtain));
      const glow = 0.8 * clamp01(0.55 + 0.6 * noise(u * 1.7, 20 + curtain)) * (0.75 + 0.25 * noise(u * 28, curtain));
      const top = Math.max(0, Math.floor(foot - tall));
      for (let y = top; y < Math.min(horizon, foot + unit * 0.03); y++) {
        const up = (foot - y) / tall;
        const alpha = up > 0 ? glow * (1 - up) ** 2 : glow * clamp01(1 + (up * tall) / (unit * 0.03));
        const high = clamp01(up * 1.6);
        const r = lower[0] + (upper[0] - lower[0]) * high;
        const g = lower[1] + (upper[1] - lower[1]) * high;
        const b = lower[2] + (upper[2] - lower[2]) * high;
        lay(pixels, (y * width + x) * 3, r, g, b, alpha);
      }
    }
  }
}
