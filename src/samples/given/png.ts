// PNG of every kind, unpacked and unfiltered row by row. Of an interlaced one the first pass is read: an eighth of its size.
import { loadZlib } from "../media/zlib.ts";
import type { Picture } from "../painter/picture.ts";
import { type PngColors, pixelsOf } from "./png-colors.ts";
import { Shrinking } from "./shrinking.ts";
import { demand } from "./unreadable.ts";

/** A longer side, or more of it unpacked, is a trap, or would take too long. */
const bounds = { side: 32_768, unpackedBytes: 64 * 1024 * 1024 } as const;
/** Programs write chunks of some kilobytes. Each costs a turn of the unpacker, however short it is. */
const mostChunks = 10_000;
/** For each kind of colour, how many samples a pixel has. */
const samplesOf: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

export async function decodePng(data: Uint8Array): Promise<Picture> {
  const chunks = chunksOf(data);
  const head = chunks.find(({ type }) => type === "IHDR")?.body;
  demand(head !== undefined && head.length >= 13, "no header");
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const [width, height] = [view.getUint32(0), view.getUint32(4)].map((side) => (head[12] === 1 ? side / 8 : side));
  const size = { width: Math.ceil(width ?? 0), height: Math.ceil(height ?? 0) };
  demand(Math.max(size.width, size.height) <= bounds.side, "too long a side");
  const [depth = 0, kind = 0] = head.subarray(8);
  const samples = samplesOf[kind];
  demand(samples !== undefined && [1, 2, 4, 8, 16].includes(depth), "no known colours");
  const palette = chunks.find(({ type }) => type === "PLTE")?.body;
  const clear = chunks.find(({ type }) => type === "tRNS")?.body;
  const colors: PngColors = { kind, depth, samples, palette, clear };
  const packed = chunks.filter(({ type }) => type === "IDAT").map(({ body }) => body);
  return unpack(packed, size, colors);
}

interface Chunk {
  readonly type: string;
  readonly body: Uint8Array;
}

/** The last one may be cut short. */
function chunksOf(data: Uint8Array): Chunk[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const chunks: Chunk[] = [];
  for (let at = 8; at + 8 < data.length; ) {
    demand(chunks.length < mostChunks, "too many chunks");
    const length = view.getUint32(at);
    const type = String.fromCharCode(...data.subarray(at + 4, at + 8));
    chunks.push({ type, body: data.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return chunks;
}

async function unpack(
  packed: readonly Uint8Array[],
  { width, height }: { width: number; height: number },
  colors: PngColors,
): Promise<Picture> {
  const { constants, createInflate } = loadZlib();
  const shrinking = new Shrinking(width, height);
  const bytesPerPixel = Math.max(1, (colors.samples * colors.depth) >> 3);
  const stride = Math.ceil((width * colors.samples * colors.depth) / 8);
  let [row, above] = [new Uint8Array(stride + 1), new Uint8Array(stride + 1)];
  const pixels = new Uint8Array(width * 3);
  let [filled, unpacked] = [0, 0];
  // What is cut short ends where it ends. It is unpacked as it is read: never more than a piece is held.
  const inflate = createInflate({ finishFlush: constants.Z_SYNC_FLUSH });
  for (const part of packed) inflate.write(part);
  inflate.end();
  try {
    for await (const piece of inflate) {
      unpacked += piece.length;
      for (let at = 0; at < piece.length && !shrinking.isFull; ) {
        const taken = Math.min(row.length - filled, piece.length - at);
        row.set(piece.subarray(at, at + taken), filled);
        filled += taken;
        at += taken;
        if (filled < row.length) continue;
        unfilter(row, above, bytesPerPixel);
        pixelsOf(row, colors, pixels);
        shrinking.add(pixels);
        [row, above, filled] = [above, row, 0];
      }
      if (shrinking.isFull || unpacked > bounds.unpackedBytes) break;
    }
  } catch {
    // Broken in the middle: what came before is shown.
  }
  return shrinking.finish();
}

/** Each row begins with the way in which it was made smaller. */
function unfilter(row: Uint8Array, above: Uint8Array, back: number): void {
  const way = row[0] as number;
  const last = row.length;
  if (way === 1) for (let i = 1 + back; i < last; i++) row[i] = (row[i] as number) + (row[i - back] as number);
  else if (way === 2) for (let i = 1; i < last; i++) row[i] = (row[i] as number) + (above[i] as number);
  else if (way === 3) {
    for (let i = 1; i < last; i++) {
      const left = i > back ? (row[i - back] as number) : 0;
      row[i] = (row[i] as number) + ((left + (above[i] as number)) >> 1);
    }
  } else if (way === 4) {
    for (let i = 1; i < last; i++) {
      const isFirst = i <= back;
      const left = isFirst ? 0 : (row[i - back] as number);
      const corner = isFirst ? 0 : (above[i - back] as number);
      row[i] = (row[i] as number) + nearest(left, above[i] as number, corner);
    }
  }
}

/** Paeth's: of the three, the one next to left + up − corner. */
function nearest(left: number, up: number, corner: number): number {
  const [toLeft, toUp] = [Math.abs(up - corner), Math.abs(left - corner)];
  const toCorner = Math.abs(left + up - 2 * corner);
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}
