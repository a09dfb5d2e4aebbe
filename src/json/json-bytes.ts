// The innermost loops of the JSON scanner.
//
// They count in small integers only. An isolate runs them on its first large body before they are compiled, and there
// anything wider than 31 bits is put on the heap: testing four bytes at a step took ten times as long.
import { Buffer } from "node:buffer";

/** 1: may stand in a string as it is. */
const PLAIN = new Uint8Array(256).fill(1, 0x20);
PLAIN[0x22] = 0;
PLAIN[0x5c] = 0;

/** The first byte from `at` on that may not stand in a string as it is (a quote, a backslash, a control), or `to`. */
export function plainEnd(bytes: Uint8Array, at: number, to: number): number {
  let i = at;
  while (i < to && PLAIN[bytes[i] as number] === 1) i++;
  return i;
}

/** The first byte from `at` on that is not a digit, or `to`. */
export function digitsEnd(bytes: Uint8Array, at: number, to: number): number {
  let i = at;
  while (i < to && isDigit(bytes[i] as number)) i++;
  return i;
}

const quote = new Uint8Array([0x22]);
const { indexOf } = Buffer.prototype;

/** The first quote from `at` on, or `to`. The buffer's search is native; that of a Uint8Array goes byte by byte. */
export function quoteEnd(bytes: Uint8Array, at: number, to: number): number {
  const found = indexOf.call(bytes.subarray(at, to), quote);
  return found < 0 ? to : at + found;
}

/** Where these bytes first stand among those from `from` to `to`; -1 where they do not. */
export function indexOfBytes(bytes: Uint8Array, from: number, to: number, sought: Uint8Array): number {
  const found = indexOf.call(bytes.subarray(from, to), sought);
  return found < 0 ? -1 : from + found;
}

/** Is the byte at `at` escaped by the backslashes before it? They are counted back to `from`, where none is open. */
export function isEscaped(bytes: Uint8Array, from: number, at: number): boolean {
  let i = at;
  while (i > from && bytes[i - 1] === 0x5c) i--;
  return ((at - i) & 1) === 1;
}

export const isDigit = (byte: number): boolean => (byte ^ 0x30) < 10;
export const isBlank = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** The first byte from `at` on that is not white space, or `to`. */
export function blanksEnd(bytes: Uint8Array, at: number, to: number): number {
  let i = at;
  while (i < to && isBlank(bytes[i] as number)) i++;
  return i;
}

const isHex = (byte: number): boolean => isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);

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

const TRUE = [0x74, 0x72, 0x75, 0x65];
const FALSE = [0x66, 0x61, 0x6c, 0x73, 0x65];
const NULL = [0x6e, 0x75, 0x6c, 0x6c];

/** The bytes of the literal that begins with the `t`, `f` or `n` at `at`; 0 when more are needed to say, -1: none. */
export function literalLength(bytes: Uint8Array, at: number, to: number): number {
  const literal = bytes[at] === TRUE[0] ? TRUE : bytes[at] === FALSE[0] ? FALSE : NULL;
  if (to - at < literal.length) return 0;
  for (let i = 1; i < literal.length; i++) if (bytes[at + i] !== literal[i]) return -1;
  return literal.length;
}
