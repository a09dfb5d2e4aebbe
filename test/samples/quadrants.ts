// A picture that is told from others by the colours of its quarters.
import { expect } from "vitest";
import type { Picture } from "../../src/samples/painter/picture.ts";

type Rgb = readonly [number, number, number];
type Quarters = readonly [Rgb, Rgb, Rgb, Rgb];

/** Red and green above blue and yellow. */
export const quarters: Quarters = [
  [220, 40, 40],
  [40, 200, 60],
  [40, 60, 220],
  [230, 220, 60],
];

export function quadrants(width: number, height: number): Picture {
  const rgb = new Uint8Array(width * height * 3);
  for (const [n, row] of [0, Math.ceil(height / 2)].entries()) {
    for (let x = 0; x < width; x++) rgb.set(quarters[n * 2 + (x < width / 2 ? 0 : 1)] as Rgb, (row * width + x) * 3);
  }
  for (let y = 1; y < height; y++) {
    if (y !== Math.ceil(height / 2)) rgb.copyWithin(y * width * 3, (y - 1) * width * 3, y * width * 3);
  }
  return { width, height, rgb };
}

/** The mean colour of each quarter. */
export function quartersOf({ width, height, rgb }: Picture): Quarters {
  return quarters.map((_, n) => {
    const [left, right] = n % 2 === 0 ? [0, Math.ceil(width / 2)] : [Math.ceil(width / 2), width];
    const [top, bottom] = n < 2 ? [0, Math.ceil(height / 2)] : [Math.ceil(height / 2), height];
    let [r, g, b] = [0, 0, 0];
    for (let y = top; y < bottom; y++) {
      for (let at = (y * width + left) * 3; at < (y * width + right) * 3; at += 3) {
        r += rgb[at] as number;
        g += rgb[at + 1] as number;
        b += rgb[at + 2] as number;
      }
    }
    const area = (right - left) * (bottom - top);
    return [r / area, g / area, b / area] as const;
  }) as unknown as Quarters;
}

/** Each quarter is nearer to its own colour than to that of any other, and no farther off than so much. */
export function expectLikeness(picture: Picture, farthest: number, expected: Quarters = quarters): void {
  for (const [n, mean] of quartersOf(picture).entries()) {
    const distances = expected.map((color) => Math.max(...color.map((value, i) => Math.abs(value - (mean[i] ?? 0)))));
    expect(distances[n], `quarter ${n} is ${mean.map(Math.round)}`).toBeLessThanOrEqual(farthest);
    expect(distances.indexOf(Math.min(...distances))).toBe(n);
  }
}
