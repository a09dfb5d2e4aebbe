// What is painted on: floats until the end, so that soft glows do not band;
// sizes are told in parts of its shorter side.
import type { Color } from "./color.ts";

export interface Canvas {
  readonly width: number;
  readonly height: number;
  /** The shorter side: what sizes are measured in, so that a portrait's sun is no larger than a landscape's. */
  readonly unit: number;
  readonly pixels: Float32Array;
}

/** What a canvas is developed into. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Three bytes a pixel, row by row. */
  readonly rgb: Uint8Array;
}

export const canvasOf = (width: number, height: number): Canvas => ({
  width,
  height,
  unit: Math.min(width, height),
  pixels: new Float32Array(width * height * 3),
});

export const clamp01 = (value: number): number => (value < 0 ? 0 : value > 1 ? 1 : value);

export const smooth = (low: number, high: number, value: number): number => {
  const t = clamp01((value - low) / (high - low));
  return t * t * (3 - 2 * t);
};

/** Lays a colour over the pixel that starts at this index. */
export function lay(pixels: Float32Array, index: number, r: number, g: number, b: number, alpha: number): void {
  const keep = 1 - alpha;
  pixels[index] = (pixels[index] as number) * keep + r * alpha;
  pixels[index + 1] = (pixels[index + 1] as number) * keep + g * alpha;
  pixels[index + 2] = (pixels[index + 2] as number) * keep + b * alpha;
}

/** Visits the pixels of a box that lie on the canvas; the share of each that is covered comes from `cover`. */
export function dab(
  canvas: Canvas,
  [left, top, right, bottom]: readonly [number, number, number, number],
  [r, g, b]: Color,
  cover: (x: number, y: number) => number,
): void {
  const { width, height, pixels } = canvas;
  const lastX = Math.min(width - 1, Math.ceil(right));
  const lastY = Math.min(height - 1, Math.ceil(bottom));
  for (let y = Math.max(0, Math.floor(top)); y <= lastY; y++) {
    for (let x = Math.max(0, Math.floor(left)); x <= lastX; x++) {
      const alpha = cover(x + 0.5, y + 0.5);
      if (alpha > 0.003) lay(pixels, (y * width + x) * 3, r, g, b, alpha);
    }
  }
}

/** A soft-edged disc. */
export const disc = (canvas: Canvas, x: number, y: number, radius: number, color: Color, opacity = 1): void =>
  dab(
    canvas,
    [x - radius - 1, y - radius - 1, x + radius + 1, y + radius + 1],
    color,
    (px, py) => opacity * clamp01(radius + 0.5 - Math.sqrt((px - x) ** 2 + (py - y) ** 2)),
  );

/** A light that fades out at its radius. */
export const halo = (canvas: Canvas, x: number, y: number, radius: number, color: Color, strength: number): void =>
  dab(canvas, [x - radius, y - radius, x + radius, y + radius], color, (px, py) => {
    const near = 1 - ((px - x) ** 2 + (py - y) ** 2) / (radius * radius);
    return near > 0 ? strength * near * near * near : 0;
  });

/** A convex polygon, its corners given clockwise as the eye sees them. */
export function polygon(
  canvas: Canvas,
  corners: readonly (readonly [number, number])[],
  color: Color,
  opacity = 1,
): void {
  const xs = corners.map((corner) => corner[0]);
  const ys = corners.map((corner) => corner[1]);
  const edges = corners.map(([x, y], i) => {
    const [nextX, nextY] = corners[(i + 1) % corners.length] as readonly [number, number];
    const length = Math.hypot(nextX - x, nextY - y) || 1;
    return { x, y, across: -(nextY - y) / length, down: (nextX - x) / length };
  });
  dab(canvas, [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)], color, (px, py) => {
    let cover = 1;
    for (const edge of edges) {
      cover = Math.min(cover, (px - edge.x) * edge.across + (py - edge.y) * edge.down + 0.5);
    }
    return opacity * clamp01(cover);
  });
}
