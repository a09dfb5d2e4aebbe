// The pixels of a VP8L image, and of the small images in it, in which each pixel says something of a square of the large one
// (RFC 9649, sections 3.5 and 3.6). A pixel has 32 bits: alpha, red, green, blue.
import { demand } from "./unreadable.ts";
import { type PrefixCodes, readPrefixCodes, type Vp8lBits } from "./vp8l-codes.ts";

/** Programs make some hundreds at most. Each takes memory. */
const mostGroups = 1000;
const literals = 256;
const lengths = 24;
const distances = 40;

/** Of green with lengths and remembered colours, of red, blue and alpha, and of distances. */
type Group = readonly [PrefixCodes, PrefixCodes, PrefixCodes, PrefixCodes, PrefixCodes];

/** A small image: one pixel for each square of so many. */
export interface Squares {
  readonly pixels: Uint32Array;
  readonly width: number;
  /** The length of a square's side, as a power of two. */
  readonly shift: number;
}

export function readSquares(bits: Vp8lBits, width: number, height: number): Squares {
  const shift = bits.number(3) + 2;
  const across = Math.ceil(width / 2 ** shift);
  return { pixels: readPixels(bits, across, Math.ceil(height / 2 ** shift)), width: across, shift };
}

export const squareAt = ({ pixels, width, shift }: Squares, x: number, y: number): number =>
  pixels[(y >> shift) * width + (x >> shift)] as number;

/** As many rows as came. The whole image may say for each of its squares which codes are used there. */
export function readPixels(bits: Vp8lBits, width: number, height: number, isWhole = false): Uint32Array {
  const cacheBits = bits.flag() ? bits.number(4) : 0;
  demand(cacheBits <= 11, "no known colours");
  const cache = new Uint32Array(1 << cacheBits);
  const squares = isWhole && bits.flag() ? readSquares(bits, width, height) : undefined;
  const count = 1 + (squares?.pixels.reduce((most, pixel) => Math.max(most, (pixel >>> 8) & 0xffff), 0) ?? 0);
  demand(count <= mostGroups, "no known codes");
  const sizes = [literals + lengths + (cacheBits > 0 ? cache.length : 0), literals, literals, literals, distances];
  const groups = Array.from(
    { length: count },
    () => sizes.map((size) => readPrefixCodes(bits, size)) as unknown as Group,
  );
  const pixels = new Uint32Array(width * height);
  let at = 0;
  let remembered = 0;
  while (at < pixels.length && !bits.isOver) {
    const group = squares ? (squareAt(squares, at % width, Math.floor(at / width)) >>> 8) & 0xffff : 0;
    const [green, red, blue, alpha, distance] = groups[group] as Group;
    const symbol = bits.symbol(green);
    if (symbol < literals) {
      const [r, b, a] = [bits.symbol(red), bits.symbol(blue), bits.symbol(alpha)];
      pixels[at++] = (a << 24) | (r << 16) | (symbol << 8) | b;
    } else if (symbol < literals + lengths) {
      const length = readLong(bits, symbol - literals);
      const from = at - distanceOf(readLong(bits, bits.symbol(distance)), width);
      demand(from >= 0, "no known distance");
      const end = Math.min(at + length, pixels.length);
      for (let n = from; at < end; n++) pixels[at++] = pixels[n] as number;
    } else {
      while (remembered < at) remember(cache, pixels[remembered++] as number, cacheBits);
      pixels[at++] = cache[symbol - literals - lengths] as number;
    }
  }
  return pixels.subarray(0, at - (at % width));
}

function remember(cache: Uint32Array, pixel: number, bits: number): void {
  cache[Math.imul(0x1e35a7bd, pixel) >>> (32 - bits)] = pixel;
}

function readLong(bits: Vp8lBits, prefix: number): number {
  if (prefix < 4) return prefix + 1;
  const more = (prefix - 2) >> 1;
  return ((2 + (prefix & 1)) << more) + bits.number(more) + 1;
}

/** Small ones stand for neighbours in the rows above and to the left: the nearest first. */
const neighbours = Array.from({ length: 128 }, (_, n) => [(n & 15) - 7, n >> 4] as const)
  .filter(([x, y]) => x > 0 || y > 0)
  .sort(([x, y], [u, v]) => x * x + y * y - u * u - v * v || v - y || u - x);

function distanceOf(said: number, width: number): number {
  const [x, y] = neighbours[said - 1] ?? [said - neighbours.length, 0];
  return Math.max(1, x + y * width);
}
