// Folded silk, for abstract prompts: noise bent by noise, lit by its own slope.
import { between, type Chance } from "../chance.ts";
import { type Canvas, clamp01 } from "./canvas.ts";
import { ramp } from "./color.ts";
import { fieldOf } from "./field.ts";
import { noiseFrom } from "./noise.ts";
import type { Palette } from "./palette.ts";

export function paintSilk(canvas: Canvas, palette: Palette, chance: Chance): void {
  const { width, height, unit, pixels } = canvas;
  const noise = noiseFrom(chance);
  const scale = between(chance, 0.75, 1.15) / unit;
  const [turnX, turnY] = [between(chance, 0.6, 1), between(chance, -0.9, 0.9)];
  const fold = (x: number, y: number) => {
    const [u, v] = [x * scale, y * scale];
    const bendX = noise(u + 3, v * 1.2) + 0.3 * noise(u * 2.3, v * 2.1 + 5);
    const bendY = noise(u * 1.1 + 11, v + 7) + 0.3 * noise(u * 1.9 + 9, v * 2.4);
    return noise(u + bendX * 0.9, v + bendY * 0.9) + (u * turnY + v * turnX) * 0.5;
  };
  const step = unit / 120;
  const folds = fieldOf(width, height, fold);
  const slopes = fieldOf(width, height, (x, y) => fold(x + step, y + step * 1.4) - fold(x - step, y - step * 1.4));
  const colors = [palette.land, ...palette.sky, palette.light, palette.accent];
  const steps = 2048;
  const table = ramp([...colors, ...colors.toReversed().slice(1)], steps);
  const [row, slope] = [new Float32Array(width), new Float32Array(width)];
  const start = chance();
  for (let y = 0, i = 0; y < height; y++) {
    folds.row(y, row);
    slopes.row(y, slope);
    for (let x = 0; x < width; x++, i += 3) {
      const along = start + (row[x] as number) * 0.42;
      const at = Math.floor((along - Math.floor(along)) * steps) * 3;
      const shine = clamp01(0.5 + (slope[x] as number) * 4);
      const light = 0.66 + shine * 0.46;
      const gloss = 60 * shine * shine * shine * shine;
      pixels[i] = (table[at] as number) * light + gloss;
      pixels[i + 1] = (table[at + 1] as number) * light + gloss;
      pixels[i + 2] = (table[at + 2] as number) * light + gloss;
    }
  }
}
