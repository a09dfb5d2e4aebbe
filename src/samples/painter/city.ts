// A skyline: towers one row behind another, with more windows lit the darker it is.
import { between, type Chance } from "../chance.ts";
import { type Canvas, dab, disc, halo } from "./canvas.ts";
import { type Color, mix } from "./color.ts";
import type { Palette } from "./palette.ts";

export function paintCity(canvas: Canvas, palette: Palette, street: number, chance: Chance): void {
  const air = palette.sky[4] ?? palette.light;
  const dark = (palette.land[0] + palette.land[1] + palette.land[2]) / 3 < 50;
  for (let row = 0; row < 3; row++) {
    const depth = 0.3 + 0.32 * row;
    const front = mix(mix(air, palette.sky[2] ?? air, 0.4), palette.land, depth);
    paintRow(canvas, palette, street, row, front, dark ? 0.3 + 0.2 * row : 0.12, chance);
  }
}

function paintRow(
  canvas: Canvas,
  palette: Palette,
  street: number,
  row: number,
  front: Color,
  lit: number,
  chance: Chance,
): void {
  const { width, height, unit } = canvas;
  const foot = mix(front, palette.sky[3] ?? front, 0.35);
  const middle = width * between(chance, 0.3, 0.7);
  const tallest = Math.min(street * 0.62, unit * 0.5) * (1 - row * 0.2);
  for (let x = -unit * 0.05; x < width; ) {
    const wide = Math.round(unit * between(chance, 0.035, 0.085));
    const central = 1 / (1 + ((x - middle) / (unit * 0.5)) ** 2);
    const top = Math.round(street - tallest * (0.25 + 0.75 * chance() * (0.35 + 0.65 * central)));
    const left = Math.round(x);
    block(canvas, [left, top, left + wide - 1, height], front);
    dab(canvas, [left, top, left + wide - 1, street], foot, (_, y) => 0.7 * ((y - top) / (street - top)) ** 2);
    crown(canvas, palette, left, wide, top, front, chance);
    windows(canvas, palette, [left, top, wide, street], lit, chance);
    x += wide + (chance() < 0.3 ? unit * 0.012 * chance() : 0);
  }
}

const block = (canvas: Canvas, box: readonly [number, number, number, number], color: Color) =>
  dab(canvas, box, color, () => 1);

function crown(
  canvas: Canvas,
  palette: Palette,
  left: number,
  wide: number,
  top: number,
  color: Color,
  chance: Chance,
) {
  const { unit } = canvas;
  const kind = chance();
  const middle = left + Math.floor(wide / 2);
  if (kind < 0.35) {
    const inset = Math.round(wide * 0.2);
    block(canvas, [left + inset, top - Math.round(unit * 0.018), left + wide - 1 - inset, top], color);
  }
  if (kind > 0.2 && kind < 0.42) {
    const tip = top - unit * between(chance, 0.04, 0.09);
    block(canvas, [middle, tip, middle + Math.floor(unit / 700), top], color);
    halo(canvas, middle, tip, unit * 0.012, palette.accent, 0.8);
    disc(canvas, middle + 0.5, tip, unit * 0.0016, palette.accent);
  }
}

function windows(
  canvas: Canvas,
  palette: Palette,
  [left, top, wide, street]: readonly [number, number, number, number],
  lit: number,
  chance: Chance,
): void {
  const { unit } = canvas;
  const [stepX, stepY] = [Math.max(3, Math.round(unit * 0.0095)), Math.max(4, Math.round(unit * 0.0135))];
  const [sizeX, sizeY] = [Math.max(1, Math.round(stepX * 0.45)), Math.max(1, Math.round(stepY * 0.45))];
  const warm = mix(palette.accent, palette.light, between(chance, 0.3, 0.8));
  const share = lit * between(chance, 0.4, 1.4);
  for (let y = top + stepY; y < street - stepY; y += stepY) {
    for (let x = left + stepX - sizeX; x + sizeX < left + wide - 1; x += stepX) {
      const glow = chance() < share ? between(chance, 0.35, 0.95) : 0;
      if (glow) dab(canvas, [x, y, x + sizeX - 1, y + sizeY - 1], warm, () => glow);
    }
  }
}
