// What the header of a VP8 key frame says (RFC 6386, section 9).
import { demand, webpPixels } from "./unreadable.ts";
import { Vp8Bits } from "./vp8-bits.ts";
import { changeChances, meanSteps, otherSteps, tokenChances } from "./vp8-tables.ts";

/** Each bit takes its time. Photos of so many pixels have half as much, of the highest quality. */
const mostBytes = 3 * 1024 * 1024;

export interface Vp8Frame {
  readonly width: number;
  readonly height: number;
  /** In macroblocks. */
  readonly columns: number;
  readonly rows: number;
  /** Of the macroblocks' modes. */
  readonly bits: Vp8Bits;
  /** Of their coefficients: the rows take turns. */
  readonly parts: readonly Vp8Bits[];
  /** Where each macroblock says which segment it belongs to. */
  readonly segmentChances: readonly number[] | undefined;
  /** For each segment, by how much the means and the other coefficients of luma, of its means, and of chroma are multiplied. */
  readonly steps: readonly (readonly number[])[];
  readonly chances: Uint8Array;
  /** Where each macroblock says whether it has coefficients at all. */
  readonly emptyChance: number | undefined;
}

export function readVp8Frame(data: Uint8Array): Vp8Frame {
  const [head, width, height] = [little(data, 0, 3), little(data, 6, 2) & 0x3fff, little(data, 8, 2) & 0x3fff];
  demand((head & 1) === 0 && little(data, 3, 3) === 0x2a019d, "no picture in it");
  demand(width * height <= webpPixels && data.length <= mostBytes, "too many pixels");
  const end = 10 + (head >> 5);
  const bits = new Vp8Bits(data.subarray(10, end));
  // What colours are written as, of which there is one way.
  bits.number(2);
  const segments = readSegments(bits);
  // How the edges of blocks are made smooth, which is not done here: blocks are predicted from sharp ones.
  bits.number(10);
  if (bits.flag() && bits.flag()) for (let n = 0; n < 8; n++) bits.difference(6);
  const parts = partsOf(data, end, 1 << bits.number(2));
  const steps = readSteps(bits, segments);
  // Whether the chances are kept for the next frame.
  bits.flag();
  const chances = tokenChances.map((chance, at) =>
    bits.bit(changeChances[at] as number) === 1 ? bits.number(8) : chance,
  );
  const emptyChance = bits.flag() ? bits.number(8) : undefined;
  const [columns, rows] = [Math.ceil(width / 16), Math.ceil(height / 16)];
  return { width, height, columns, rows, bits, parts, segmentChances: segments.chances, steps, chances, emptyChance };
}

function little(data: Uint8Array, at: number, bytes: number): number {
  return bytes === 0 ? 0 : (data[at] ?? 0) + 256 * little(data, at + 1, bytes - 1);
}

/** The sizes of all but the last stand before the first. */
function partsOf(data: Uint8Array, sizes: number, count: number): Vp8Bits[] {
  let from = sizes + 3 * (count - 1);
  return Array.from({ length: count }, (_, n) => {
    const start = from;
    from = n === count - 1 ? data.length : start + little(data, sizes + 3 * n, 3);
    return new Vp8Bits(data.subarray(start, from));
  });
}

interface Segments {
  readonly quantizers: readonly number[];
  /** Those are no differences to the common one. */
  readonly areWhole: boolean;
  readonly chances: readonly number[] | undefined;
}

function readSegments(bits: Vp8Bits): Segments {
  if (!bits.flag()) return { quantizers: [0, 0, 0, 0], areWhole: false, chances: undefined };
  const [isMapped, isSaid] = [bits.flag(), bits.flag()];
  const areWhole = isSaid && bits.flag();
  const quantizers = [7, 7, 7, 7].map((size) => (isSaid ? bits.difference(size) : 0));
  if (isSaid) for (let n = 0; n < 4; n++) bits.difference(6);
  const chances = isMapped ? [8, 8, 8].map((size) => (bits.flag() ? bits.number(size) : 255)) : undefined;
  return { quantizers, areWhole, chances };
}

function readSteps(bits: Vp8Bits, { quantizers, areWhole }: Segments): number[][] {
  const common = bits.number(7);
  const more = [4, 4, 4, 4, 4].map((size) => bits.difference(size));
  const [means = 0, meansOfMeans = 0, othersOfMeans = 0, chromaMeans = 0, chroma = 0] = more;
  return quantizers.map((said) => {
    const base = areWhole ? said : common + said;
    const step = (table: readonly number[], more: number) => table[Math.min(Math.max(base + more, 0), 127)] as number;
    return [
      step(meanSteps, means),
      step(otherSteps, 0),
      step(meanSteps, meansOfMeans) * 2,
      Math.max(8, Math.floor((step(otherSteps, othersOfMeans) * 155) / 100)),
      Math.min(132, step(meanSteps, chromaMeans)),
      step(otherSteps, chroma),
    ];
  });
}
