// A picture that was given, shown again: cut to another shape, and tinted by the mood of a prompt.
import { type Canvas, canvasOf, type Picture } from "./canvas.ts";
import { ramp } from "./color.ts";
import type { Palette } from "./palette.ts";

/** The whole shape filled, and as much of the picture shown as can be, from its middle. */
export function fitted({ width, height, rgb }: Picture, across: number, down: number): Picture {
  const scale = Math.min(width / across, height / down);
  const [left, top] = [(width - across * scale) / 2, (height - down * scale) / 2];
  const out = new Uint8Array(across * down * 3);
  const edge = (at: number, start: number, most: number) => Math.min(most, Math.floor(start + at * scale));
  for (let y = 0, at = 0; y < down; y++) {
    const from = edge(y, top, height - 1);
    const to = Math.max(from + 1, edge(y + 1, top, height));
    for (let x = 0; x < across; x++, at += 3) {
      const first = edge(x, left, width - 1);
      const last = Math.max(first + 1, edge(x + 1, left, width));
      let [r, g, b] = [0, 0, 0];
      for (let row = from; row < to; row++) {
        for (let i = (row * width + first) * 3; i < (row * width + last) * 3; i += 3) {
          r += rgb[i] as number;
          g += rgb[i + 1] as number;
          b += rgb[i + 2] as number;
        }
      }
      const area = (to - from) * (last - first);
      out[at] = r / area;
      out[at + 1] = g / area;
      out[at + 2] = b / area;
    }
  }
  return { width: across, height: down, rgb: out };
}

/** How much of the prompt's light falls on the picture. */
const tinting = 0.35;
const shades = 256;

/** A canvas to be developed at that size; no larger than the picture is itself. */
export function retouched(given: Picture, across: number, down: number, { land, sky, light }: Palette): Canvas {
  const scale = Math.min(1, given.width / across, given.height / down);
  const side = (length: number) => Math.max(1, Math.round(length * scale));
  const { width, height, rgb } = fitted(given, side(across), side(down));
  const canvas = canvasOf(width, height);
  // From its darkest colour to its lightest: what is dark takes the land's colour, what is light the sun's.
  const mood = ramp([land, ...sky, light], shades);
  for (let i = 0; i < rgb.length; i += 3) {
    const [r, g, b] = [rgb[i] as number, rgb[i + 1] as number, rgb[i + 2] as number];
    const shade = Math.min(shades - 1, Math.round(0.299 * r + 0.587 * g + 0.114 * b)) * 3;
    canvas.pixels[i] = r + ((mood[shade] as number) - r) * tinting;
    canvas.pixels[i + 1] = g + ((mood[shade + 1] as number) - g) * tinting;
    canvas.pixels[i + 2] = b + ((mood[shade + 2] as number) - b) * tinting;
  }
  return canvas;
}
