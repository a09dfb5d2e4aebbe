// What a JPEG's frame header says: its size, its components, and how small it is made while it is read.
import { demand, heldPixels } from "./unreadable.ts";

export interface Component {
  readonly id: number;
  /** How many of its blocks lie beside and below one another in one unit. */
  readonly across: number;
  readonly down: number;
  readonly steps: number;
  /** In blocks: what a scan of this component alone has, and what whole units have. */
  readonly ownColumns: number;
  readonly ownRows: number;
  readonly columns: number;
  readonly rows: number;
  /** The coefficients that are kept of each block; a baseline picture is transformed as it is read, and keeps none. */
  readonly kept: Int16Array;
  /** Its samples, `side` by `side` a block. */
  readonly plane: Uint8Array;
  /** Of the block that was read last. */
  mean: number;
  isRead: boolean;
}

export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly isProgressive: boolean;
  readonly components: readonly Component[];
  readonly unitsAcross: number;
  readonly unitsDown: number;
  readonly widest: number;
  readonly tallest: number;
  /** So many samples beside each other are made of a block of eight: 8, 4, 2 or 1. */
  readonly side: number;
  /** So many coefficients of a block are kept: all, or its mean alone. */
  readonly keptPerBlock: number;
}

/** Of a larger progressive picture the means of its blocks are kept alone. */
const wholePixels = 2_000_000;

export function readFrame(marker: number, body: Uint8Array): Frame {
  const [precision = 0, ...size] = body.subarray(0, 5);
  const [height, width] = [(size[0] ?? 0) * 256 + (size[1] ?? 0), (size[2] ?? 0) * 256 + (size[3] ?? 0)];
  const count = body[5] ?? 0;
  demand(precision === 8 && width > 0 && height > 0, "no size that can be read");
  demand((count === 1 || count === 3 || count === 4) && body.length >= 6 + 3 * count, "no known components");
  const said = Array.from({ length: count }, (_, n) => {
    const [id = 0, factors = 0, steps = 0] = body.subarray(6 + 3 * n, 9 + 3 * n);
    // One component alone is never interleaved: its factors mean nothing.
    const [across, down] = count === 1 ? [1, 1] : [factors >> 4, factors & 15];
    demand(across >= 1 && across <= 4 && down >= 1 && down <= 4, "no known sampling");
    return { id, across, down, steps: steps & 3 };
  });
  const widest = Math.max(...said.map(({ across }) => across));
  const tallest = Math.max(...said.map(({ down }) => down));
  const isProgressive = marker === 0xc2;
  const keepsAll = width * height <= wholePixels;
  const sides = isProgressive && !keepsAll ? [1] : [8, 4, 2, 1];
  const side = sides.find((n) => width * height * n * n <= heldPixels * 64);
  demand(side !== undefined, "too many pixels");
  const keptPerBlock = isProgressive ? (keepsAll ? 64 : 1) : 0;
  const [unitsAcross, unitsDown] = [Math.ceil(width / (8 * widest)), Math.ceil(height / (8 * tallest))];
  const components = said.map((component): Component => {
    const { across, down } = component;
    const [columns, rows] = [unitsAcross * across, unitsDown * down];
    return {
      ...component,
      ownColumns: Math.ceil((width * across) / widest / 8),
      ownRows: Math.ceil((height * down) / tallest / 8),
      columns,
      rows,
      kept: new Int16Array(columns * rows * keptPerBlock),
      plane: new Uint8Array(columns * rows * side * side).fill(128),
      mean: 0,
      isRead: false,
    };
  });
  return { width, height, isProgressive, components, unitsAcross, unitsDown, widest, tallest, side, keptPerBlock };
}
