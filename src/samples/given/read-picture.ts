// A picture that was given to a sample, decoded as far as it is needed. Whatever the bytes are, it never throws.
import type { Picture } from "../painter/picture.ts";
import { decodeGif } from "./gif.ts";
import { decodeJpeg } from "./jpeg.ts";
import { decodePng } from "./png.ts";
import { decodeWebp } from "./webp.ts";

const formats: readonly [head: readonly number[], decode: (data: Uint8Array) => Picture | Promise<Picture>][] = [
  [[0xff, 0xd8, 0xff], decodeJpeg],
  [[0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], decodePng],
  [[0x47, 0x49, 0x46, 0x38], decodeGif],
  [[0x52, 0x49, 0x46, 0x46], decodeWebp],
];

/** Undefined for what is no picture, and for AVIF, whose decoder is larger than all samples together. */
export async function readPicture(data: Uint8Array): Promise<Picture | undefined> {
  const [, decode] = formats.find(([head]) => head.every((byte, at) => data[at] === byte)) ?? [];
  try {
    return await decode?.(data);
  } catch {
    return undefined;
  }
}
