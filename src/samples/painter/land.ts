// Land: ridges one behind another, each fading into the air between.
import { between, type Chance } from "../chance.ts";
import { type Canvas, clamp01, lay } from "./canvas.ts";
import { type Color, mix } from "./color.ts";
import { type Field, fieldOf } from "./field.ts";
import { crested, fractal, type Noise, noiseFrom } from "./noise.ts";
import type { Palette } from "./palette.ts";
import type { Sun } from "./sky.ts";

/** Pixels from the top, at each column's border. */
export interface Ridge {
  readonly edge: Float32Array;
  /** The edge without its trees: mist lies along the ground, not along the treetops. */
  readonly ground: Float32Array;
}

export type Shape = "mountain" | "hill" | "dune" | "pine" | "headland";

export function ridgeOf(
  canvas: Canvas,
  shape: Shape,
  base: number,
  rise: number,
  scale: number,
  chance: Chance,
): Ridge {
  const { width, height, unit } = canvas;
  const noise = noiseFrom(chance);
  const shift = chance() * 100;
  const east = chance() < 0.5;
  const ground = new Float32Array(width + 1);
  for (let x = 0; x <= width; x++) {
    const u = (x / unit) * scale + shift;
    let up = 0.5 + 0.5 * fractal(noise, u, 0.5, 3, 0.35);
    if (shape === "mountain") up = crested(noise, u * 0.8, 0.3, 6);
    if (shape === "dune") up = 0.5 + 0.5 * noise(u + 0.35 * noise(u * 0.7, 3), 0.7) + 0.06 * noise(u * 3, 0.1);
    if (shape === "headland") {
      const along = east ? x / width : 1 - x / width;
      const steep = clamp01((along - 0.42) * 3) ** 0.6 * (0.95 + 0.12 * fractal(noise, u * 4, 0.5, 3));
      up = steep * ((height - base) / (rise * unit) + 1) - (height - base) / (rise * unit) - 0.05;
    }
    ground[x] = base - up * rise * unit;
  }
  return { ground, edge: shape === "pine" ? pinesOn(canvas, ground, scale, chance) : ground };
}

/** Raises an edge by firs: a height line cannot overhang, but a sawtooth reads as branches. */
function pinesOn({ width, unit }: Canvas, ground: Float32Array, scale: number, chance: Chance): Float32Array {
  const edge = ground.slice();
  const tall = (unit * 0.17) / scale;
  for (let x = -tall; x < width + tall; x += tall * between(chance, 0.05, 0.26)) {
    const height = tall * between(chance, 0.35, 1) * (0.8 + 0.2 * Math.sin(x / tall));
    const half = height * between(chance, 0.17, 0.25);
    const foot = ground[Math.min(width, Math.max(0, Math.round(x)))] as number;
    const tiers = 5 + Math.floor(chance() * 3);
    for (let at = Math.max(0, Math.ceil(x - half)); at <= Math.min(width, x + half); at++) {
      const out = Math.abs(at - x) / half;
      const branch = ((out * tiers) % 1) * 0.5 * (1 - out);
      const top = foot - height * ((1 - out) ** 1.15 + branch / tiers) + height * 0.04;
      if (top < (edge[at] as number)) edge[at] = top;
    }
  }
  return edge;
}

export interface Ground {
  readonly near: Color;
  /** What it fades into towards its foot. */
  readonly mist: Color;
  /** Pixels from the edge over which it fades. */
  readonly depth: number;
  /** How much of the mist lies at the foot. */
  readonly haze: number;
  readonly texture: number;
  readonly snow?: boolean;
  readonly bottom?: number;
}

const SHADES = 64;

export function paintRidge(canvas: Canvas, ridge: Ridge, look: Ground, sun: Sun, light: Color, chance: Chance): void {
  const { width, height, unit, pixels } = canvas;
  const bottom = Math.min(height, look.bottom ?? height);
  const table = new Float32Array((SHADES + 1) * 3);
  for (let i = 0; i <= SHADES; i++) table.set(mix(look.near, look.mist, (i / SHADES) ** 0.8 * look.haze), i * 3);
  const top = Math.max(0, Math.floor(ridge.edge.reduce((least, y) => Math.min(least, y), height)));
  const glow = new Float32Array(width);
  for (let x = 0; x < width; x++) glow[x] = 1 / (1 + ((x - sun.x) / (unit * 0.45)) ** 2);
  const noise = noiseFrom(chance);
  const relief = look.texture ? reliefOf(canvas, ridge, top, bottom, sun, noise) : undefined;
  const rock = new Float32Array(width);
  const { edge, ground } = ridge;
  const mist = SHADES / look.depth;
  for (let y = top; y < bottom; y++) {
    relief?.row(y - top, rock);
    for (let x = 0; x < width; x++) {
      const left = edge[x] as number;
      const right = edge[x + 1] as number;
      const first = left < right ? left : right;
      if (y + 1 <= first) continue;
      const cover = clamp01((y + 1 - first) / (1 + Math.abs(left - right)));
      const down = clamp01(((y - (ground[x] as number)) * mist) / SHADES);
      const at = Math.floor(down * SHADES) * 3;
      const face = (rock[x] as number) * look.texture * (1 - down);
      const white = look.snow
        ? clamp01((unit * 0.1 - (y - first) * 0.75 - (y - top) * 0.35) / (unit * 0.05) + face * 4)
        : 0;
      const shine = (glow[x] as number) * (0.3 * (1 - down) + 0.1) * look.haze;
      const share = clamp01(shine + face * (0.5 + white * 0.9) + white * 0.55);
      const keep = 1 - share;
      const r = (table[at] as number) * keep + light[0] * share;
      const g = (table[at + 1] as number) * keep + light[1] * share;
      const b = (table[at + 2] as number) * keep + light[2] * share;
      lay(pixels, (y * width + x) * 3, r, g, b, cover);
    }
  }
}

/** Faces turned to the light and away from it, running down from the crest. */
function reliefOf({ width, unit }: Canvas, ridge: Ridge, top: number, bottom: number, sun: Sun, noise: Noise): Field {
  return fieldOf(width, Math.max(1, bottom - top), (x, y) => {
    const crest = ridge.ground[Math.min(width, x)] as number;
    const fall = (y + top - crest) / unit;
    const turned = (sun.x > x ? 1 : -1) * fall * 1.1;
    const u = (x / unit + turned) * 7;
    return crested(noise, u, fall * 3 + 0.3, 3) * 0.5 - 0.28;
  });
}

/** Ranges from far to near, each darker and larger than the one behind it. */
export function paintRanges(
  canvas: Canvas,
  palette: Palette,
  sun: Sun,
  chance: Chance,
  ranges: {
    shape: Shape;
    from: number;
    to: number;
    count: number;
    rise: number;
    far?: number;
    near?: number;
    bottom?: number;
  },
): void {
  const { height, unit } = canvas;
  const air = palette.sky[4] ?? palette.light;
  const alongOf = (i: number) => (ranges.count === 1 ? 1 : i / (ranges.count - 1));
  const ridges = Array.from({ length: ranges.count }, (_, i) => {
    const along = alongOf(i);
    const base = height * (ranges.from + (ranges.to - ranges.from) * along);
    const scale = ranges.shape === "pine" ? 2 - 1.3 * along : 2.3 - 1.1 * along;
    return ridgeOf(canvas, ranges.shape, base, ranges.rise * (1 - 0.25 * along), scale, chance);
  });
  for (const [i, ridge] of ridges.entries()) {
    const along = alongOf(i);
    /** What the next range hides is not painted. */
    const hidden = ridges[i + 1]?.edge.reduce((most, y) => Math.max(most, y + 2), 0);
    const faintest = ranges.far ?? 0.22;
    const depth = faintest + ((ranges.near ?? 0.9) - faintest) * along;
    const back = mix(air, palette.sky[2] ?? air, 0.45);
    const ground: Ground = {
      near: mix(back, palette.land, depth),
      mist: mix(air, palette.land, depth * 0.62),
      depth: unit * 0.34,
      haze: 0.85 - 0.35 * along,
      texture: ranges.shape === "mountain" ? 0.45 : 0,
      snow: ranges.shape === "mountain" && (palette.snow || along < 0.6),
      bottom: Math.min(hidden ?? height, ranges.bottom ?? height),
    };
    paintRidge(canvas, ridge, ground, sun, palette.light, chance);
  }
}
