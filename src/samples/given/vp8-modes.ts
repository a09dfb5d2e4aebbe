// How each macroblock of a VP8 key frame is predicted (RFC 6386, sections 10 and 11).
import type { Vp8Frame } from "./vp8-frame.ts";
import { modeChances } from "./vp8-tables.ts";

/** The numbers of the modes: these for whole squares and for blocks of four by four; the others for such blocks alone. */
export const modes = { mean: 0, plane: 1, down: 2, across: 3, byBlocks: 4 } as const;

const segmentTree = [2, 4, ~0, ~1, ~2, ~3];
const lumaTree = [~modes.byBlocks, 2, 4, 6, ~modes.mean, ~modes.down, ~modes.across, ~modes.plane];
const chromaTree = [~modes.mean, 2, ~modes.down, 4, ~modes.across, ~modes.plane];
const blockTree = [~0, 2, ~1, 4, ~2, 6, 8, 12, ~3, 10, ~5, ~6, ~4, 14, ~7, 16, ~8, ~9];
const lumaChances = [145, 156, 163, 128];
const chromaChances = [142, 114, 183];

export class Vp8Modes {
  readonly #frame: Vp8Frame;
  /** The modes of the blocks above, and of those on the left. */
  readonly #above: Uint8Array;
  readonly #left = new Uint8Array(4);
  readonly blocks = new Uint8Array(16);
  segment = 0;
  isEmpty = false;
  luma = 0;
  chroma = 0;

  constructor(frame: Vp8Frame) {
    this.#frame = frame;
    this.#above = new Uint8Array(frame.columns * 4);
  }

  /** Of the macroblock in this column of the next row, or of the same. */
  read(column: number): void {
    const { bits, segmentChances, emptyChance } = this.#frame;
    const [above, left, from] = [this.#above, this.#left, column * 4];
    if (column === 0) left.fill(0);
    if (segmentChances) this.segment = bits.branch(segmentTree, segmentChances);
    this.isEmpty = emptyChance !== undefined && bits.bit(emptyChance) === 1;
    this.luma = bits.branch(lumaTree, lumaChances);
    if (this.luma === modes.byBlocks) {
      for (let n = 0; n < 16; n++) {
        const [x, y] = [from + (n & 3), n >> 2];
        const neighbours = (above[x] as number) * 10 + (left[y] as number);
        const mode = bits.branch(blockTree, modeChances, neighbours * 9);
        this.blocks[n] = above[x] = left[y] = mode;
      }
    } else {
      above.fill(this.luma, from, from + 4);
      left.fill(this.luma);
    }
    this.chroma = bits.branch(chromaTree, chromaChances);
  }
}
