// What was done to a VP8L image's pixels before they were coded, undone (RFC 9649, section 3.5).
import { type Squares, squareAt } from "./vp8l-pixels.ts";

const opaque = 0xff000000;

/** The sum of two pixels, each of its four bytes for itself. */
const sum = (a: number, b: number): number =>
  (((a & 0xff00ff00) + (b & 0xff00ff00)) & 0xff00ff00) | (((a & 0x00ff00ff) + (b & 0x00ff00ff)) & 0x00ff00ff);
const mean = (a: number, b: number): number => (((a ^ b) & 0xfefefefe) >>> 1) + (a & b);
const byteOf = (pixel: number, shift: number): number => (pixel >>> shift) & 255;

/** By which of its neighbours a pixel was foretold: on the left, above, above to the right, above to the left. */
const guesses: readonly ((left: number, above: number, right: number, corner: number) => number)[] = [
  () => opaque,
  (left) => left,
  (_, above) => above,
  (_, __, right) => right,
  (_, __, ___, corner) => corner,
  (left, above, right) => mean(mean(left, right), above),
  (left, _, __, corner) => mean(left, corner),
  (left, above) => mean(left, above),
  (_, above, __, corner) => mean(corner, above),
  (_, above, right) => mean(above, right),
  (left, above, right, corner) => mean(mean(left, corner), mean(above, right)),
  nearer,
  (left, above, _, corner) => further(left, above, corner, 1),
  (left, above, _, corner) => further(mean(left, above), mean(left, above), corner, 2),
];

/** The one of left and above that is nearer to left + above − corner. */
function nearer(left: number, above: number, _: number, corner: number): number {
  let distance = 0;
  for (let shift = 0; shift < 32; shift += 8) {
    const own = byteOf(corner, shift);
    distance += Math.abs(byteOf(above, shift) - own) - Math.abs(byteOf(left, shift) - own);
  }
  return distance < 0 ? left : above;
}

/** From the first as far as, or half as far as, it is from the third to the second. */
function further(first: number, second: number, third: number, part: number): number {
  let pixel = 0;
  for (let shift = 0; shift < 32; shift += 8) {
    const value = byteOf(first, shift) + Math.trunc((byteOf(second, shift) - byteOf(third, shift)) / part);
    pixel |= (value < 0 ? 0 : value > 255 ? 255 : value) << shift;
  }
  return pixel;
}

export function addGuesses(pixels: Uint32Array, width: number, squares: Squares): void {
  for (let y = 0, at = 0; at < pixels.length; y++) {
    for (let x = 0; x < width; x++, at++) {
      const [left, above] = [pixels[at - 1] as number, pixels[at - width] as number];
      // The first row and the first column have one neighbour.
      let guess = y > 0 ? above : x > 0 ? left : opaque;
      if (x > 0 && y > 0) {
        const guessBy = guesses[(squareAt(squares, x, y) >>> 8) & 15];
        guess = guessBy?.(left, above, pixels[at - width + 1] as number, pixels[at - width - 1] as number) ?? opaque;
      }
      pixels[at] = sum(pixels[at] as number, guess);
    }
  }
}

/** Red and blue were taken to follow green, and blue to follow red, by shares that each square says. */
export function addShares(pixels: Uint32Array, width: number, squares: Squares): void {
  for (let y = 0, at = 0; at < pixels.length; y++) {
    for (let x = 0; x < width; x++, at++) {
      const [shares, pixel] = [squareAt(squares, x, y), pixels[at] as number];
      const green = pixel >> 8;
      const red = (pixel >> 16) + shareOf(shares, green);
      const blue = pixel + shareOf(shares >> 8, green) + shareOf(shares >> 16, red);
      pixels[at] = (pixel & 0xff00ff00) | ((red & 255) << 16) | (blue & 255);
    }
  }
}

/** Of the lowest bytes, which are taken to be signed. */
const shareOf = (share: number, of: number): number => (((share << 24) >> 24) * ((of << 24) >> 24)) >> 5;

export function addGreen(pixels: Uint32Array): void {
  for (let at = 0; at < pixels.length; at++) {
    const pixel = pixels[at] as number;
    pixels[at] = sum(pixel, byteOf(pixel, 8) * 0x10001);
  }
}

/** Pixels become the colours that they are the numbers of: each holds those of 2^shift neighbours. */
export function addColors(pixels: Uint32Array, width: number, colors: Uint32Array, shift: number): Uint32Array {
  const [packedWidth, bits] = [Math.ceil(width / 2 ** shift), 8 >> shift];
  const into = shift === 0 ? pixels : new Uint32Array((pixels.length / packedWidth) * width);
  for (let y = 0, at = 0; at < into.length; y++) {
    for (let x = 0; x < width; x++, at++) {
      const numbers = byteOf(pixels[y * packedWidth + (x >> shift)] as number, 8);
      into[at] = colors[(numbers >> ((x % 2 ** shift) * bits)) % 2 ** bits] ?? 0;
    }
  }
  return into;
}

/** Each colour of a palette is said by its difference to the one before. */
export function addBefore(colors: Uint32Array): Uint32Array {
  for (let n = 1; n < colors.length; n++) colors[n] = sum(colors[n] as number, colors[n - 1] as number);
  return colors;
}
