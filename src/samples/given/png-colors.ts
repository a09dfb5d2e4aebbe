// The pixels of a PNG's row, whatever its colours are written as. What is clear is laid on white.

export interface PngColors {
  /** 0 and 4 are greys, 2 and 6 are colours, 3 is a palette; 4 and 6 say how clear each pixel is. */
  readonly kind: number;
  /** Bits a sample. */
  readonly depth: number;
  readonly samples: number;
  readonly palette: Uint8Array | undefined;
  readonly clear: Uint8Array | undefined;
}

/** `row` begins with its filter; `into` has three bytes a pixel. */
export function pixelsOf(row: Uint8Array, colors: PngColors, into: Uint8Array): void {
  const { kind, depth, samples } = colors;
  const width = into.length / 3;
  const step = depth === 16 ? 2 : 1;
  for (let x = 0, out = 0; x < width; x++, out += 3) {
    const at = 1 + x * samples * step;
    const first = depth < 8 ? bitsOf(row, x, depth) : (row[at] as number);
    if (kind === 3) fromPalette(first, colors, into, out);
    else if (samples < 3) {
      const grey = depth < 8 ? (first * 255) / ((1 << depth) - 1) : first;
      lay(into, out, grey, grey, grey, samples === 2 ? (row[at + step] as number) : 255);
    } else {
      const [g, b] = [row[at + step] as number, row[at + 2 * step] as number];
      lay(into, out, first, g, b, samples === 4 ? (row[at + 3 * step] as number) : 255);
    }
  }
}

function bitsOf(row: Uint8Array, x: number, depth: number): number {
  const bit = x * depth;
  return ((row[1 + (bit >> 3)] as number) >> (8 - depth - (bit & 7))) & ((1 << depth) - 1);
}

function fromPalette(index: number, { palette, clear }: PngColors, into: Uint8Array, out: number): void {
  const [r = 0, g = 0, b = 0] = palette?.subarray(index * 3, index * 3 + 3) ?? [];
  lay(into, out, r, g, b, clear?.[index] ?? 255);
}

function lay(into: Uint8Array, out: number, r: number, g: number, b: number, alpha: number): void {
  const white = 255 - alpha;
  into[out] = (r * alpha) / 255 + white;
  into[out + 1] = (g * alpha) / 255 + white;
  into[out + 2] = (b * alpha) / 255 + white;
}
