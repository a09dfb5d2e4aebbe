// Space: clouds of gas, stars by the thousand, and a planet with a ring.
import { between, type Chance } from "../chance.ts";
import { type Canvas, clamp01, dab, lay, smooth } from "./canvas.ts";
import { type Color, mix, turn } from "./color.ts";
import { fieldOf } from "./field.ts";
import { fractal, noiseFrom } from "./noise.ts";
import type { Palette } from "./palette.ts";
import { paintStars } from "./sky.ts";

export function paintSpace(canvas: Canvas, palette: Palette, chance: Chance): void {
  const { width, height, unit, pixels } = canvas;
  const noise = noiseFrom(chance);
  const warped = (x: number, y: number, shift: number) => {
    const bend = fractal(noise, x * 1.2 + shift, y * 1.2, 2);
    return fractal(noise, x * 1.1 + bend * 0.8 + shift, y * 1.4 - bend * 0.5, 4);
  };
  const one = fieldOf(width, height, (x, y) => warped(x / unit, y / unit, 3));
  const two = fieldOf(width, height, (x, y) => warped(x / unit, y / unit, 31));
  const hue = between(chance, -0.5, 0.5);
  const dark = mix(palette.sky[0] ?? palette.land, [4, 6, 24], 0.6);
  const gas = turn(mix(palette.sky[2] ?? dark, [150, 60, 190], 0.6), hue);
  const fire = turn(mix(palette.sky[3] ?? dark, [70, 150, 220], 0.55), hue * 0.6);
  const [rowOne, rowTwo] = [new Float32Array(width), new Float32Array(width)];
  const lean = between(chance, -0.5, 0.5);
  for (let y = 0, i = 0; y < height; y++) {
    one.row(y, rowOne);
    two.row(y, rowTwo);
    for (let x = 0; x < width; x++, i += 3) {
      const across = (y - height / 2 - (x - width / 2) * lean) / unit;
      const band = 1 / (1 + across * across * 5);
      const cloud = clamp01((rowOne[x] as number) * 0.7 + 0.55) * band;
      const core = clamp01((rowTwo[x] as number) * 0.9 + 0.4) * band;
      pixels[i] = dark[0];
      pixels[i + 1] = dark[1];
      pixels[i + 2] = dark[2];
      lay(pixels, i, gas[0], gas[1], gas[2], cloud * cloud * 0.95);
      lay(pixels, i, fire[0], fire[1], fire[2], core * cloud * 0.95);
      lay(pixels, i, 255, 236, 226, core * core * cloud * cloud * 0.75);
    }
  }
  paintStars(canvas, 1, height * 1.6, chance);
  paintPlanet(canvas, palette, chance);
}

function paintPlanet(canvas: Canvas, palette: Palette, chance: Chance): void {
  const { width, height, unit } = canvas;
  const noise = noiseFrom(chance);
  const radius = unit * between(chance, 0.17, 0.25);
  const [cx, cy] = [width * between(chance, 0.3, 0.7), height * between(chance, 0.38, 0.6)];
  const [lightX, lightY, lightZ] = [chance() < 0.5 ? -0.72 : 0.72, -0.5, 0.48];
  const tilt = between(chance, 0.15, 0.5) * (chance() < 0.5 ? -1 : 1);
  const [cos, sin] = [Math.cos(tilt), Math.sin(tilt)];
  const body = turn(mix(palette.sky[3] ?? palette.accent, palette.light, 0.25), between(chance, -0.4, 0.4));
  const belt = mix(body, palette.sky[1] ?? palette.land, 0.6);
  const night = mix(palette.sky[0] ?? palette.land, [3, 4, 12], 0.75);
  const ring = (front: boolean) => paintRing(canvas, [cx, cy, radius, cos, sin], mix(palette.light, body, 0.35), front);
  const box = [cx - radius * 1.2, cy - radius * 1.2, cx + radius * 1.2, cy + radius * 1.2] as const;
  ring(false);
  dab(canvas, box, body, (x, y) => {
    const out = Math.sqrt((x - cx) ** 2 + (y - cy) ** 2) / radius;
    const facing = clamp01(0.35 + ((x - cx) * lightX + (y - cy) * lightY) / radius);
    return out > 1 ? 0.5 * facing * smooth(1.18, 1, out) ** 2 : 0;
  });
  dab(canvas, box, night, (x, y) => clamp01(radius + 0.5 - Math.sqrt((x - cx) ** 2 + (y - cy) ** 2)));
  const pale = mix(body, [255, 255, 255], 0.6);
  const { pixels } = canvas;
  for (let y = Math.max(0, Math.floor(cy - radius)); y < Math.min(height, cy + radius); y++) {
    for (let x = Math.max(0, Math.floor(cx - radius)); x < Math.min(width, cx + radius); x++) {
      const dx = (x + 0.5 - cx) / radius;
      const dy = (y + 0.5 - cy) / radius;
      const flat = dx * dx + dy * dy;
      if (flat > 1) continue;
      const dz = Math.sqrt(1 - flat);
      const lit = smooth(-0.12, 0.95, dx * lightX + dy * lightY + dz * lightZ);
      if (lit < 0.003) continue;
      const down = (dy * cos - dx * sin) * 5.5;
      const across = (dx * cos + dy * sin) * 0.5 + 5;
      const striped = 0.8 * smooth(-0.3, 0.6, noise(across, down) + 0.45 * noise(across * 2, down * 2.1));
      const cover = clamp01(radius + 0.5 - Math.sqrt(flat) * radius) * lit;
      const rim = (1 - dz) * (1 - dz) * 0.8;
      const r = body[0] + (belt[0] - body[0]) * striped;
      const g = body[1] + (belt[1] - body[1]) * striped;
      const b = body[2] + (belt[2] - body[2]) * striped;
      const at = (y * width + x) * 3;
      lay(pixels, at, r + (pale[0] - r) * rim, g + (pale[1] - g) * rim, b + (pale[2] - b) * rim, cover);
    }
  }
  ring(true);
}

function paintRing(
  canvas: Canvas,
  [cx, cy, radius, cos, sin]: readonly [number, number, number, number, number],
  color: Color,
  front: boolean,
): void {
  const reach = radius * 2.15;
  const tall = reach * (Math.abs(sin) + 0.28);
  dab(canvas, [cx - reach, cy - tall, cx + reach, cy + tall], color, (x, y) => {
    const down = (y - cy) * cos - (x - cx) * sin;
    if (down > 0 !== front) return 0;
    const across = (x - cx) * cos + (y - cy) * sin;
    const out = Math.sqrt(across * across + down * down * 13) / radius;
    if (out < 1.3 || out > 2.1) return 0;
    const edge = smooth(1.3, 1.36, out) * smooth(2.1, 2.0, out) * (Math.abs(out - 1.82) < 0.025 ? 0.15 : 1);
    return edge * (0.5 + 0.25 * Math.sin(out * 61) + 0.12 * Math.sin(out * 143));
  });
}
