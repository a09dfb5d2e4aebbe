// Reads a baseline JPEG back by the book (ITU T.81), slowly, so that a test can compare pixels.
import type { Decoded } from "./decode-png.ts";

const zigzag = Array.from({ length: 64 }, (_, i) => i).sort((a, b) => {
  const [rowA, rowB] = [a >> 3, b >> 3];
  const [sumA, sumB] = [rowA + (a & 7), rowB + (b & 7)];
  return sumA - sumB || (sumA % 2 ? rowA - rowB : rowB - rowA);
});
const cosines = Array.from({ length: 64 }, (_, i) => {
  const [x, u] = [i >> 3, i & 7];
  return Math.cos(((2 * x + 1) * u * Math.PI) / 16) * (u ? 0.5 : Math.SQRT1_2 / 2);
});
const at = (values: ArrayLike<number>, index: number) => values[index] ?? 0;

interface Component {
  readonly across: number;
  readonly down: number;
  readonly steps: number[];
  readonly plane: Float32Array;
  readonly stride: number;
  mean: number;
}

export function decodeJpeg(bytes: Uint8Array): Decoded {
  const steps: number[][] = [];
  const codes = new Map<number, Map<number, number>>();
  let components: Component[] = [];
  let [width, height] = [0, 0];
  for (let i = 2; i < bytes.length; ) {
    const marker = at(bytes, i + 1);
    const body = bytes.subarray(i + 4, i + 2 + at(bytes, i + 2) * 256 + at(bytes, i + 3));
    if (at(bytes, i) !== 0xff) throw new Error("no marker where one is due");
    if (marker === 0xdb) {
      for (let n = 0; n < body.length; n += 65) steps[at(body, n)] = [...body.subarray(n + 1, n + 65)];
    }
    if (marker === 0xc4) readCodes(body, codes);
    if (marker === 0xc0) {
      [height, width] = [at(body, 1) * 256 + at(body, 2), at(body, 3) * 256 + at(body, 4)];
      const stride = Math.ceil(width / 16) * 16;
      components = [0, 1, 2].map((n) => ({
        across: at(body, 7 + n * 3) >> 4,
        down: at(body, 7 + n * 3) & 15,
        steps: steps[at(body, 8 + n * 3)] ?? [],
        plane: new Float32Array(stride * Math.ceil(height / 16) * 16),
        stride,
        mean: 0,
      }));
    }
    i += 4 + body.length;
    if (marker === 0xda) {
      scan(bytes.subarray(i, bytes.length - 2), components, codes, Math.ceil(width / 16), Math.ceil(height / 16));
      break;
    }
  }
  return { width, height, rgb: toRgb(components, width, height) };
}

function readCodes(body: Uint8Array, codes: Map<number, Map<number, number>>): void {
  for (let n = 0; n < body.length; ) {
    const table = new Map<number, number>();
    codes.set(at(body, n), table);
    let symbol = n + 17;
    for (let length = 1, code = 0; length <= 16; length++, code *= 2) {
      for (let count = at(body, n + length); count > 0; count--) table.set(length * 65536 + code++, at(body, symbol++));
    }
    n = symbol;
  }
}

function scan(
  data: Uint8Array,
  parts: Component[],
  codes: Map<number, Map<number, number>>,
  wide: number,
  tall: number,
) {
  let [byte, bit] = [0, 0];
  const read = (count: number) => {
    let value = 0;
    for (let n = 0; n < count; n++) {
      value = value * 2 + ((at(data, byte) >> (7 - bit)) & 1);
      if (++bit === 8) [byte, bit] = [byte + (at(data, byte) === 255 ? 2 : 1), 0];
    }
    return value;
  };
  const symbol = (table: number) => {
    for (let length = 1, code = read(1); length <= 16; length++, code = code * 2 + read(1)) {
      const found = codes.get(table)?.get(length * 65536 + code);
      if (found !== undefined) return found;
    }
    throw new Error("a code that no table has");
  };
  const signed = (size: number) => {
    const value = read(size);
    return size && value < 2 ** (size - 1) ? value - 2 ** size + 1 : value;
  };
  for (let unit = 0; unit < wide * tall; unit++) {
    for (const [n, part] of parts.entries()) {
      for (let block = 0; block < part.across * part.down; block++) {
        const values = new Float32Array(64);
        part.mean += signed(symbol(n ? 1 : 0));
        values[0] = part.mean * at(part.steps, 0);
        for (let k = 1; k < 64; k++) {
          const code = symbol(n ? 0x11 : 0x10);
          if (code === 0) break;
          k += code >> 4;
          values[at(zigzag, k)] = signed(code & 15) * at(part.steps, k);
        }
        const column = (unit % wide) * part.across + (block % part.across);
        const row = Math.floor(unit / wide) * part.down + Math.floor(block / part.across);
        inverse(values, part, column * 8, row * 8);
      }
    }
  }
}

function inverse(values: Float32Array, { plane, stride }: Component, left: number, top: number): void {
  const half = new Float32Array(64);
  for (let v = 0; v < 8; v++) {
    for (let x = 0; x < 8; x++) {
      for (let u = 0; u < 8; u++)
        half[v * 8 + x] = at(half, v * 8 + x) + at(values, v * 8 + u) * at(cosines, x * 8 + u);
    }
  }
  for (let y = 0; y < 8; y++) {
    for (let x = 0; x < 8; x++) {
      let sum = 0;
      for (let v = 0; v < 8; v++) sum += at(half, v * 8 + x) * at(cosines, y * 8 + v);
      plane[(top + y) * stride + left + x] = sum;
    }
  }
}

function toRgb(parts: Component[], width: number, height: number): Uint8Array {
  const rgb = new Uint8ClampedArray(width * height * 3);
  for (let y = 0, out = 0; y < height; y++) {
    for (let x = 0; x < width; x++, out += 3) {
      const [luma = 0, blue = 0, red = 0] = parts.map(({ plane, stride, across, down }) =>
        at(plane, (across === 2 ? y * stride + x : (y >> 1) * stride + (x >> 1)) + (down - across)),
      );
      rgb[out] = luma + 128 + 1.402 * red;
      rgb[out + 1] = luma + 128 - 0.344136 * blue - 0.714136 * red;
      rgb[out + 2] = luma + 128 + 1.772 * blue;
    }
  }
  return new Uint8Array(rgb.buffer);
}

/** Decibels: how close two pictures are. */
export function likeness(one: Uint8Array, other: Uint8Array): number {
  const error = one.reduce((sum, value, i) => sum + (value - at(other, i)) ** 2, 0) / one.length;
  return 10 * Math.log10((255 * 255) / error);
}
