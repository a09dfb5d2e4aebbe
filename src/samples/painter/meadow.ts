// A meadow in flower: rows from far to near, each larger and less pale than the one behind it.
import { between, type Chance, pick } from "../chance.ts";
import { type Canvas, clamp01, dab, disc, polygon } from "./canvas.ts";
import { type Color, hex, mix, turn } from "./color.ts";
import { paintRidge, ridgeOf } from "./land.ts";
import type { Palette } from "./palette.ts";
import type { Sun } from "./sky.ts";

export function paintMeadow(canvas: Canvas, palette: Palette, sun: Sun, from: number, chance: Chance): void {
  const { width, height, unit } = canvas;
  const green = mix(mix(palette.land, hex("3f7d4a"), palette.moon ? 0.12 : 0.45), palette.sky[3] ?? palette.land, 0.12);
  const ridge = ridgeOf(canvas, "hill", from, 0.07, 1, chance);
  const ground = {
    near: mix(green, palette.sky[4] ?? green, 0.4),
    mist: green,
    depth: (height - from) * 0.8,
    haze: 1,
    texture: 0,
  };
  paintRidge(canvas, ridge, ground, sun, palette.light, chance);
  const hues = [
    palette.accent,
    turn(palette.accent, 0.35),
    turn(palette.accent, -0.4),
    mix(palette.light, palette.accent, 0.2),
  ];
  const rows = 15;
  for (let row = 0; row < rows; row++) {
    const near = row / (rows - 1);
    const y = from + (height * 1.04 - from) * near ** 1.5;
    const size = unit * (0.004 + 0.05 * near ** 2.2);
    const air = mix(green, palette.sky[4] ?? green, 0.35 * (1 - near));
    const grass = Math.round((width / (unit * 0.012)) * (0.5 + near));
    for (let n = 0; n < grass && row > 2; n++) {
      const blade = { x: chance() * width, foot: y + size * (1 + chance() * 2), tall: size * between(chance, 1, 2.6) };
      const shade = mix(air, chance() < 0.5 ? palette.land : palette.light, between(chance, 0.05, 0.3));
      const bend = between(chance, -0.5, 0.5) * blade.tall;
      const foot = Math.max(1, size * 0.1);
      polygon(
        canvas,
        [
          [blade.x + bend, blade.foot - blade.tall],
          [blade.x + foot, blade.foot],
          [blade.x - foot, blade.foot],
        ],
        shade,
      );
    }
    const blooms = Math.round((width / (size + unit * 0.008)) * 0.32);
    for (let n = 0; n < blooms; n++) {
      const [x, top] = [chance() * width, y - size * between(chance, 0, 2.2)];
      const color = mix(pick(chance, hues), air, 0.35 * (1 - near) + chance() * 0.12);
      if (size > unit * 0.012) {
        const lean = between(chance, -0.6, 0.6) * size;
        const stem = Math.max(0.8, size * 0.055);
        polygon(
          canvas,
          [
            [x - stem, top],
            [x + stem, top],
            [x + lean + stem, top + size * 4],
            [x + lean - stem, top + size * 4],
          ],
          mix(air, palette.land, 0.4),
        );
      }
      paintBloom(canvas, palette, x, top, size, color, chance);
    }
  }
}

function paintBloom(
  canvas: Canvas,
  palette: Palette,
  x: number,
  y: number,
  size: number,
  color: Color,
  chance: Chance,
): void {
  if (size < canvas.unit * 0.009) {
    disc(canvas, x, y, Math.max(0.7, size * 0.5), color, 0.9);
    return;
  }
  const petals = 5 + Math.floor(chance() * 3);
  const [spin, flat] = [chance() * 6.3, between(chance, 0.62, 0.95)];
  const box = [x - size, y - size, x + size, y + size] as const;
  const petal = (shrink: number, turned: number) => (px: number, py: number) => {
    const dx = px - x;
    const dy = (py - y) / flat;
    const away = Math.sqrt(dx * dx + dy * dy);
    const reach = size * shrink;
    if (away > reach + 0.5) return 0;
    if (away < reach * 0.5) return 1;
    const wave = Math.abs(Math.cos((Math.atan2(dy, dx) + spin + turned) * petals * 0.5));
    return clamp01(reach * (0.5 + 0.5 * Math.sqrt(wave)) - away + 0.5);
  };
  dab(canvas, box, mix(color, palette.land, 0.3), petal(1, Math.PI / petals));
  dab(canvas, box, color, petal(0.94, 0));
  dab(canvas, box, mix(color, palette.light, 0.4), (px, py) => petal(0.6, 0.2)(px, py) * 0.5);
  disc(canvas, x, y, size * 0.2, mix(hex("f5c542"), palette.land, 0.15));
  disc(canvas, x, y + size * 0.03, size * 0.1, mix(hex("a8642a"), palette.land, 0.2), 0.7);
}
