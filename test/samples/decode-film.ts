// Reads a sample film back: its boxes, and its first frame, whose blocks are stored as samples.
import type { Picture } from "../../src/samples/painter/picture.ts";

interface DecodedFilm {
  readonly seconds: number;
  readonly frames: number;
  readonly first: Picture;
}

/** A block's kind, padding, and its samples. */
const blockBytes = 2 + 384;

export function decodeFilm(bytes: Uint8Array): DecodedFilm {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const inner = (path: string): number =>
    path.split(".").reduce((from, type) => {
      for (let at = from; at < bytes.length; at += view.getUint32(at)) {
        if (String.fromCharCode(...bytes.subarray(at + 4, at + 8)) === type) return at + 8;
      }
      throw new Error(`no ${path}`);
    }, 0);
  const tables = "moov.trak.mdia.minf.stbl";
  const header = inner("moov.mvhd");
  const described = inner(`${tables}.stsd`) + 8;
  const [width, height] = [view.getUint16(described + 32), view.getUint16(described + 34)];
  const sizes = inner(`${tables}.stsz`);
  const from = view.getUint32(inner(`${tables}.stco`) + 8);
  if (from !== inner("mdat")) throw new Error("the first frame lies elsewhere");
  const unit = bytes.subarray(from + 4, from + view.getUint32(sizes + 12));
  if (view.getUint32(from) !== unit.length || unit[0] !== 0x65) throw new Error("the film begins with no key frame");
  return {
    seconds: view.getUint32(header + 16) / view.getUint32(header + 12),
    frames: view.getUint32(sizes + 8),
    first: firstFrame(unit, width, height),
  };
}

function firstFrame(unit: Uint8Array, width: number, height: number): Picture {
  const rgb = new Uint8Array(width * height * 3);
  const blocks = (width * height) / 256;
  for (let n = 0; n < blocks; n++) {
    const end = unit.length - 1 - (blocks - 1 - n) * blockBytes;
    const samples = unit.subarray(end - 384, end);
    const [left, top] = [(n % (width / 16)) * 16, Math.floor(n / (width / 16)) * 16];
    for (let i = 0; i < 256; i++) {
      const [x, y] = [i % 16, i >> 4];
      const half = (y >> 1) * 8 + (x >> 1);
      const light = ((samples[i] ?? 0) - 16) * (255 / 219);
      const blue = ((samples[256 + half] ?? 0) - 128) * (255 / 224);
      const red = ((samples[320 + half] ?? 0) - 128) * (255 / 224);
      const color = [light + 1.5748 * red, light - 0.1873 * blue - 0.4681 * red, light + 1.8556 * blue];
      rgb.set(
        color.map((value) => Math.min(255, Math.max(0, Math.round(value)))),
        ((top + y) * width + left + x) * 3,
      );
    }
  }
  return { width, height, rgb };
}
