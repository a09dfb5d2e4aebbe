// The two inverse transforms of VP8, in whole numbers (RFC 6386, section 14).

const between = new Int32Array(16);

/** The means of sixteen blocks, which start at `from`, become the first coefficient of each. */
export function spreadMeans(blocks: Int32Array, from: number): void {
  for (let x = 0; x < 4; x++) walsh(blocks, from + x, between, x, 4, 4, 0);
  for (let y = 0; y < 4; y++) walsh(between, 4 * y, blocks, 64 * y, 1, 16, 3);
}

/** A line of four, of whose sums so many bits are cut off. */
function walsh(
  of: Int32Array,
  from: number,
  into: Int32Array,
  to: number,
  step: number,
  stride: number,
  cut: number,
): void {
  const [a, b] = [(of[from] as number) + cut, of[from + step] as number];
  const [c, d] = [of[from + 2 * step] as number, of[from + 3 * step] as number];
  into[to] = (a + d + b + c) >> cut;
  into[to + stride] = (a - d + b - c) >> cut;
  into[to + 2 * stride] = (a + d - b - c) >> cut;
  into[to + 3 * stride] = (a - d - b + c) >> cut;
}

/** Adds the block, whose coefficients start at `from`, to what was predicted. */
export function addBlock(block: Int32Array, from: number, pixels: Uint8ClampedArray, at: number, stride: number): void {
  let found = 0;
  for (let n = 0; n < 16; n++) found |= block[from + n] as number;
  if (found === 0) return;
  for (let n = 0; n < 4; n++) cosine(block, from + n, 4, n, 4, 0);
  for (let y = 0, line = at; y < 4; y++, line += stride) {
    cosine(between, 4 * y, 1, 4 * y, 1, 4);
    for (let x = 0; x < 4; x++) pixels[line + x] = (pixels[line + x] as number) + ((between[4 * y + x] as number) >> 3);
  }
}

function cosine(of: Int32Array, from: number, step: number, to: number, stride: number, round: number): void {
  const [i, j] = [(of[from] as number) + round, of[from + step] as number];
  const [k, l] = [of[from + 2 * step] as number, of[from + 3 * step] as number];
  const [a, b] = [i + k, i - k];
  const [c, d] = [sine(j) - cosined(l), cosined(j) + sine(l)];
  between[to] = a + d;
  between[to + stride] = b + c;
  between[to + 2 * stride] = b - c;
  between[to + 3 * stride] = a - d;
}

/** By √2 sin(π/8), and by √2 cos(π/8). */
const sine = (value: number) => (value * 35_468) >> 16;
const cosined = (value: number) => value + ((value * 20_091) >> 16);
