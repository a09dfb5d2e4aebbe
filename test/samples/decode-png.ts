// Reads a PNG back, so that a test can compare pixels; checks every CRC on the way.
import { loadZlib } from "../../src/samples/media/zlib.ts";

const { crc32 } = loadZlib();

export interface Decoded {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;
}

export async function decodePng(bytes: Uint8Array): Promise<Decoded> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parts: Uint8Array[] = [];
  const types: string[] = [];
  for (let at = 8; at < bytes.length; ) {
    const length = view.getUint32(at);
    const typed = bytes.subarray(at + 4, at + 8 + length);
    if (crc32(typed) !== view.getUint32(at + 8 + length)) throw new Error("a chunk's CRC is wrong");
    const type = String.fromCharCode(...typed.subarray(0, 4));
    types.push(type);
    if (type === "IDAT") parts.push(typed.subarray(4));
    at += length + 12;
  }
  if (types[0] !== "IHDR" || types.at(-1) !== "IEND") throw new Error(`chunks in a wrong order: ${types}`);
  const [width, height] = [view.getUint32(16), view.getUint32(20)];
  const inflated = new Response(new Blob(parts)).body?.pipeThrough(new DecompressionStream("deflate"));
  const rows = new Uint8Array(await new Response(inflated).arrayBuffer());
  const stride = width * 3;
  if (rows.length !== (stride + 1) * height) throw new Error("the data is not as long as the picture");
  const rgb = new Uint8Array(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = rows[y * (stride + 1)];
    if (filter !== 1 && filter !== 2) throw new Error(`unexpected filter ${filter}`);
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const before = filter === 2 ? (y > 0 ? rgb[at - stride] : 0) : x >= 3 ? rgb[at - 3] : 0;
      rgb[at] = (rows[y * (stride + 1) + 1 + x] ?? 0) + (before ?? 0);
    }
  }
  return { width, height, rgb };
}
