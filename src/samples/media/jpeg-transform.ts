// The cosine transform of eight by eight values after Arai, Agui and Nakajima: five multiplications a line.

/** Where each coefficient lies in its block, row by row, in the order in which files have them. */
export const zigzag = Uint8Array.of(
  ...[
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28,
  ],
  ...[
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47,
    55, 62, 63,
  ],
);

/** What the transform leaves to the quantizer. */
export const scaleFactors = Float64Array.of(
  1,
  1.387039845,
  1.306562965,
  1.175875602,
  1,
  0.785694958,
  0.5411961,
  0.275899379,
);

export function forwardDct(block: Float32Array): void {
  for (let row = 0; row < 64; row += 8) line(block, row, 1);
  for (let column = 0; column < 8; column++) line(block, column, 8);
}

function line(d: Float32Array, at: number, step: number): void {
  const i1 = at + step;
  const i2 = i1 + step;
  const i3 = i2 + step;
  const i4 = i3 + step;
  const i5 = i4 + step;
  const i6 = i5 + step;
  const i7 = i6 + step;
  const d0 = d[at] as number;
  const d1 = d[i1] as number;
  const d2 = d[i2] as number;
  const d3 = d[i3] as number;
  const d4 = d[i4] as number;
  const d5 = d[i5] as number;
  const d6 = d[i6] as number;
  const d7 = d[i7] as number;
  const outer = d0 + d7;
  const inner = d3 + d4;
  const second = d1 + d6;
  const third = d2 + d5;
  const even = outer - inner;
  const even2 = (second - third + even) * Math.SQRT1_2;
  d[at] = outer + inner + second + third;
  d[i4] = outer + inner - second - third;
  d[i2] = even + even2;
  d[i6] = even - even2;
  const low = d3 - d4 + d2 - d5;
  const middle = d2 - d5 + d1 - d6;
  const high = d1 - d6 + d0 - d7;
  const turned = (low - high) * 0.382683433;
  const z2 = 0.5411961 * low + turned;
  const z4 = 1.306562965 * high + turned;
  const z3 = middle * Math.SQRT1_2;
  const z11 = d0 - d7 + z3;
  const z13 = d0 - d7 - z3;
  d[i5] = z13 + z2;
  d[i3] = z13 - z2;
  d[i1] = z11 + z4;
  d[i7] = z11 - z4;
}
