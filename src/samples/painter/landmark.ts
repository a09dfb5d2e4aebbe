// What gives a landscape its size: a lighthouse on its headland, birds far off.
import { between, type Chance } from "../chance.ts";
import { type Canvas, clamp01, dab, halo, polygon } from "./canvas.ts";
import { type Color, hex, mix } from "./color.ts";
import { paintRidge, ridgeOf } from "./land.ts";
import type { Palette } from "./palette.ts";
import type { Sun } from "./sky.ts";

/** On a headland at one side, its beam turned over the water. */
export function paintLighthouse(canvas: Canvas, palette: Palette, sun: Sun, shore: number, chance: Chance): void {
  const { width, unit } = canvas;
  const rock = mix(palette.land, palette.sky[2] ?? palette.land, 0.12);
  const ridge = ridgeOf(canvas, "headland", shore, 0.1, 1, chance);
  const east = (ridge.ground[width] as number) < (ridge.ground[0] as number);
  const x = width * (east ? 0.79 : 0.21);
  const foot = (ridge.ground[Math.round(x)] as number) + unit * 0.015;
  const tall = Math.min(unit * 0.36, foot * 0.62);
  const lamp = foot - tall;
  const glow = palette.moon || palette.stars > 0.2 || palette.land[1] < 45;
  if (glow) paintBeam(canvas, x, lamp, east ? -1 : 1, palette.light);
  const half = (up: number) => unit * (0.032 - 0.013 * up);
  const white = mix(palette.light, palette.land, 0.12);
  const red = mix(hex("c8382f"), palette.land, 0.2);
  const shadow = mix(palette.land, palette.sky[1] ?? palette.land, 0.3);
  const lit = sun.x < x ? -1 : 1;
  for (let stripe = 0; stripe < 5; stripe++) {
    const [low, high] = [(stripe / 5) * 0.9, ((stripe + 1) / 5) * 0.9];
    const corners = [
      [-half(high), -high],
      [half(high), -high],
      [half(low), -low],
      [-half(low), -low],
    ] as const;
    polygon(
      canvas,
      corners.map(([dx, up]) => [x + dx, foot + up * tall] as const),
      stripe % 2 ? red : white,
    );
  }
  const shade = (px: number, py: number) => {
    const out = ((px - x) / half((foot - py) / tall)) * lit;
    return Math.abs(out) <= 1 ? 0.75 * clamp01(0.45 - out * 0.6) : 0;
  };
  dab(canvas, [x - half(0), lamp + tall * 0.1, x + half(0), foot], shadow, shade);
  const box = (dx: number, top: number, bottom: number, color: Color) =>
    polygon(
      canvas,
      [
        [x - dx, top],
        [x + dx, top],
        [x + dx, bottom],
        [x - dx, bottom],
      ],
      color,
    );
  box(unit * 0.028, lamp + tall * 0.08, lamp + tall * 0.1, shadow);
  box(unit * 0.014, lamp - tall * 0.03, lamp + tall * 0.08, mix(palette.accent, palette.light, 0.7));
  box(unit * 0.0015, lamp - tall * 0.03, lamp + tall * 0.08, shadow);
  const roof = lamp - tall * 0.03;
  polygon(
    canvas,
    [
      [x, roof - unit * 0.03],
      [x + unit * 0.02, roof],
      [x - unit * 0.02, roof],
    ],
    red,
  );
  halo(canvas, x, lamp + tall * 0.025, unit * (glow ? 0.13 : 0.05), palette.light, glow ? 0.85 : 0.3);
  const ground = { near: rock, mist: mix(rock, palette.land, 0.7), depth: unit * 0.2, haze: 0.5, texture: 0.25 };
  paintRidge(canvas, ridge, ground, sun, palette.light, chance);
}

function paintBeam(canvas: Canvas, x: number, y: number, side: number, color: Color): void {
  const reach = canvas.width;
  for (const [way, strength] of [
    [side, 0.5],
    [-side, 0.25],
  ] as const) {
    dab(
      canvas,
      [way < 0 ? x - reach : x, y - reach * 0.2, way < 0 ? x : x + reach, y + reach * 0.1],
      color,
      (px, py) => {
        const out = (px - x) * way;
        const off = (py - y + out * 0.06) / (out * 0.075 + 2);
        return out > 0 && off * off < 1 ? strength * (1 - off * off) * (1 - out / reach) ** 2 : 0;
      },
    );
  }
}

/** A flock: two strokes a bird. */
export function paintBirds(canvas: Canvas, palette: Palette, horizon: number, chance: Chance): void {
  const { width, unit } = canvas;
  const [cx, cy] = [width * between(chance, 0.2, 0.8), horizon * between(chance, 0.25, 0.6)];
  const color = mix(palette.land, palette.sky[2] ?? palette.land, 0.25);
  for (let n = 0; n < 7; n++) {
    const [x, y] = [cx + between(chance, -0.16, 0.16) * unit, cy + between(chance, -0.07, 0.07) * unit];
    const size = unit * between(chance, 0.008, 0.016);
    const lift = size * between(chance, 0.25, 0.6);
    const thick = Math.max(1, unit * 0.0022);
    polygon(
      canvas,
      [
        [x - size, y - lift],
        [x, y],
        [x, y + thick],
      ],
      color,
    );
    polygon(
      canvas,
      [
        [x + size, y - lift],
        [x, y + thick],
        [x, y],
      ],
      color,
    );
  }
}
