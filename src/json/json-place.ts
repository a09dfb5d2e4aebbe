// Where in a JSON text its reader stands, between one byte and the next.

/** JSON.parse has no bound, but what parses after us (upstreams, canonical forms) recurses. */
export const MAX_DEPTH = 512;
/**
 * This much of a string is checked byte by byte. In the rest only the closing quote is searched for: bad escapes and
 * control characters pass there.
 */
export const STRICT_BYTES = 4096;
/** Where a text is to be read to the letter: no text is longer. */
export const ALL_BYTES = 64 * 1024 * 1024;

// What the next byte is read as. From ZERO on: inside a number.
export const VALUE = 0;
export const FIRST_VALUE = 1;
export const KEY = 2;
export const FIRST_KEY = 3;
export const COLON = 4;
export const AFTER = 5;
export const STRING = 6;
export const NAME = 7;
export const MINUS = 8;
export const ZERO = 9;
export const INTEGER = 10;
export const DOT = 11;
export const FRACTION = 12;
export const E = 13;
export const E_SIGN = 14;
export const EXPONENT = 15;

export const OBJECT = 0;
export const ARRAY = 1;

export class JsonPlace {
  state = VALUE;
  depth = 0;
  /** How many of the open containers are watched: always the outermost ones. */
  watched = 0;
  /** How many bytes of the open string are still to be read to the letter. */
  strict = 0;
  /** What each open container is, by its depth. */
  readonly stack = new Uint8Array(MAX_DEPTH + 1);
}
