// How a camera was held: Exif says by how much a photo is to be turned before it is shown.
import type { Picture } from "../painter/picture.ts";

const orientationTag = 0x0112;

/** From 1, upright, to 8; undefined where the segment says nothing. */
export function readOrientation(body: Uint8Array): number | undefined {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  if (body.length < 14 || view.getUint32(0) !== 0x45786966) return undefined;
  const start = 6;
  const isLittle = view.getUint16(start) === 0x4949;
  const first = start + view.getUint32(start + 4, isLittle);
  if (first + 2 > body.length) return undefined;
  const count = view.getUint16(first, isLittle);
  for (let at = first + 2, n = 0; n < count && at + 12 <= body.length; n++, at += 12) {
    if (view.getUint16(at, isLittle) !== orientationTag) continue;
    const said = view.getUint16(at + 8, isLittle);
    return said >= 1 && said <= 8 ? said : undefined;
  }
  return undefined;
}

/** Upright. */
export function turned(picture: Picture, orientation: number): Picture {
  if (orientation === 1) return picture;
  const { width, height, rgb } = picture;
  const isSideways = orientation >= 5;
  const [across, down] = isSideways ? [height, width] : [width, height];
  const out = new Uint8Array(rgb.length);
  // Bit by bit: the rows run upwards, the columns run leftwards.
  const [flipsX, flipsY] = flips[orientation] ?? [false, false];
  for (let y = 0, at = 0; y < down; y++) {
    for (let x = 0; x < across; x++, at += 3) {
      const [u, v] = isSideways ? [y, x] : [x, y];
      const from = ((flipsY ? height - 1 - v : v) * width + (flipsX ? width - 1 - u : u)) * 3;
      out[at] = rgb[from] as number;
      out[at + 1] = rgb[from + 1] as number;
      out[at + 2] = rgb[from + 2] as number;
    }
  }
  return { width: across, height: down, rgb: out };
}

/** Whether the stored columns, and the stored rows, are read backwards. */
const flips: Readonly<Record<number, readonly [boolean, boolean]>> = {
  2: [true, false],
  3: [true, true],
  4: [false, true],
  5: [false, false],
  6: [false, true],
  7: [true, true],
  8: [true, false],
};
