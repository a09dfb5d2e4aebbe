// WebP: the chunk that holds the picture, or the first picture of an animation. Alpha that lies in a chunk of its own is left out.
import type { Picture } from "../painter/picture.ts";
import { demand } from "./unreadable.ts";
import { decodeVp8 } from "./vp8.ts";
import { decodeVp8l } from "./vp8l.ts";

/** The names of chunks, as numbers. */
const names = { webp: 0x57454250, lossy: 0x56503820, lossless: 0x5650384c, frame: 0x414e4d46 } as const;
/** What a frame says of itself before its chunks. */
const frameBytes = 16;

export function decodeWebp(data: Uint8Array): Picture {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  demand(view.getUint32(8) === names.webp, "no picture in it");
  for (let at = 12; at + 8 < data.length; ) {
    const [name, length] = [view.getUint32(at), view.getUint32(at + 4, true)];
    at += 8;
    const body = data.subarray(at, at + length);
    if (name === names.lossy) return decodeVp8(body);
    if (name === names.lossless) return decodeVp8l(body);
    at += name === names.frame ? frameBytes : length + (length & 1);
  }
  demand(false, "no picture in it");
}
