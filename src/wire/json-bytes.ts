// The innermost loops of the JSON scanner: runs of plain text, digits and blanks, four bytes at a step where that pays.

// A byte-wise test of four bytes in one integer: the high bit of a byte of the result says that the test hit. A hit may
// borrow from the bytes above it and make them look hit too, so only the lowest one counts.
const HIGH = 0x80808080 | 0;

/** How many whole bytes lie below the lowest hit. */
const firstHit = (hits: number): number => (31 - Math.clz32(hits & -hits)) >> 3;

/** Hits quotes, backslashes and controls. */
const special = (four: number): number =>
  ((four - 0x20202020) | ((four ^ 0x22222222) - 0x01010101) | ((four ^ 0x5c5c5c5c) - 0x01010101)) & ~four;

/** The first byte from `at` on that may not stand in a string as it is (a quote, a backslash, a control), or `to`. */
export function plainEnd(bytes: Uint8Array, view: DataView, at: number, to: number): number {
  let i = at;
  // Most strings are short; a long one is worth more bytes a step.
  for (const last = Math.min(at + 16, to) - 4; i <= last; i += 4) {
    const hits = special(view.getInt32(i, true)) & HIGH;
    if (hits !== 0) return i + firstHit(hits);
  }
  for (const last = to - 16; i <= last; i += 16) {
    const low = special(view.getInt32(i, true)) | special(view.getInt32(i + 4, true));
    const high = special(view.getInt32(i + 8, true)) | special(view.getInt32(i + 12, true));
    if (((low | high) & HIGH) !== 0) break;
  }
  for (const last = to - 4; i <= last; i += 4) {
    const hits = special(view.getInt32(i, true)) & HIGH;
    if (hits !== 0) return i + firstHit(hits);
  }
  for (; i < to; i++) {
    const byte = bytes[i] as number;
    if (byte < 0x20 || byte === 0x22 || byte === 0x5c) break;
  }
  return i;
}

/** The first byte from `at` on that is not a digit, or `to`. */
export function digitsEnd(bytes: Uint8Array, view: DataView, at: number, to: number): number {
  let i = at;
  for (const last = to - 4; i <= last; i += 4) {
    const four = view.getInt32(i, true);
    const hits = ((four - 0x30303030) | (four + 0x46464646) | four) & HIGH;
    if (hits !== 0) return i + firstHit(hits);
  }
  for (; i < to; i++) if (((bytes[i] as number) - 0x30) >>> 0 > 9) break;
  return i;
}

export const isBlank = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** The first byte from `at` on that is not white space, or `to`. */
export function blanksEnd(bytes: Uint8Array, at: number, to: number): number {
  let i = at;
  while (i < to && isBlank(bytes[i] as number)) i++;
  return i;
}

const isHex = (byte: number): boolean => (byte - 0x30) >>> 0 < 10 || ((byte | 0x20) - 0x61) >>> 0 < 6;

/** The bytes of the escape that begins at `at`: 2 or 6; 0 when more bytes are needed to say, -1 when it is none. */
export function escapeLength(bytes: Uint8Array, at: number, to: number): number {
  if (at + 1 >= to) return 0;
  switch (bytes[at + 1]) {
    case 0x22: // " \ / b f n r t
    case 0x5c:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return 2;
    case 0x75: {
      if (at + 6 > to) return 0;
      for (let i = at + 2; i < at + 6; i++) if (!isHex(bytes[i] as number)) return -1;
      return 6;
    }
    default:
      return -1;
  }
}
