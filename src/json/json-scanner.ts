// A streaming JSON parser: it accepts what JSON.parse accepts, and tells its listener of the members that the listener
// watches.
import {
  blanksEnd,
  digitsEnd,
  escapeLength,
  isBlank,
  isDigit,
  isEscaped,
  literalLength,
  plainEnd,
  quoteEnd,
} from "./json-bytes.ts";
import { JsonTelling } from "./json-events.ts";
import { type JsonListener, MAX_KEY_BYTES, WATCH } from "./json-listener.ts";
import {
  AFTER,
  ARRAY,
  COLON,
  DOT,
  E,
  E_SIGN,
  EXPONENT,
  FIRST_KEY,
  FIRST_VALUE,
  FRACTION,
  INTEGER,
  JsonPlace,
  KEY,
  MAX_DEPTH,
  MINUS,
  NAME,
  OBJECT,
  STRICT_BYTES,
  STRING,
  VALUE,
  ZERO,
} from "./json-place.ts";
import { canSkim, skim } from "./json-skim.ts";

export type JsonFault = "not-json" | "too-deep";

/** After an escaped quote in a long string, this much is read byte by byte again: more escapes are likely. */
const WARY_BYTES = 256;

/**
 * V8 optimizes a function that is called often better than one long loop. With one call per buffer, bodies of small
 * values took twice the time.
 */
const STEP_BYTES = 4 * 1024;

/**
 * Does not look at UTF-8: that is checked natively beside it. `scan` may leave a short tail (half an escape, half a
 * literal); the caller keeps the bytes from `held(next)` on in its buffer and hands them in again, in front of the new
 * ones. Its fields are `private`, not `#`: V8 threw away the compiled loop of `step` each time it came to store a
 * `#field`.
 */
export class JsonScanner {
  fault: JsonFault | undefined;
  private readonly place = new JsonPlace();
  private readonly telling: JsonTelling;

  /** How much of each string is read to the letter. */
  private readonly strictBytes: number;

  constructor(listener: JsonListener, strictBytes = STRICT_BYTES) {
    this.telling = new JsonTelling(listener);
    this.strictBytes = strictBytes;
  }

  /** Reads `bytes` from `from` to `to`; returns where to go on, or -1 on a fault. */
  scan(bytes: Uint8Array, from: number, to: number): number {
    const { place } = this;
    for (let next = from; ; ) {
      if (canSkim(place)) next = skim(place, bytes, next, next + STEP_BYTES, to);
      const at = next;
      next = this.step(bytes, at, at + STEP_BYTES, to);
      if (next <= at) return next;
    }
  }

  /** Begins nothing from `enough` on, so that it is called often. */
  private step(bytes: Uint8Array, from: number, enough: number, to: number): number {
    const { place, telling, strictBytes } = this;
    const stack = place.stack;
    let state = place.state;
    let depth = place.depth;
    let inArray = stack[depth] === ARRAY;
    let told = depth === place.watched;
    let strictEnd = from + place.strict;
    let i = from;

    const stop = Math.min(enough, to);
    reading: while (i < stop) {
      const byte = bytes[i] as number;
      switch (state) {
        case FIRST_VALUE:
        case VALUE:
          if (byte === 0x22) {
            if (told) telling.begin(depth, "string", i);
            state = STRING;
            i++;
            strictEnd = i + strictBytes;
          } else if (byte >= 0x31 && byte <= 0x39) {
            if (told) telling.begin(depth, "number", i);
            state = INTEGER;
            i++;
          } else if (byte === 0x7b || byte === 0x5b) {
            if (depth === MAX_DEPTH) return this.fail("too-deep");
            const watch = told && telling.begin(depth, byte === 0x7b ? "object" : "array", i) === WATCH;
            depth++;
            if (watch) place.watched = depth;
            told = watch;
            inArray = byte === 0x5b;
            stack[depth] = inArray ? ARRAY : OBJECT;
            state = inArray ? FIRST_VALUE : FIRST_KEY;
            i++;
          } else if (byte === 0x2d || byte === 0x30) {
            if (told) telling.begin(depth, "number", i);
            state = byte === 0x2d ? MINUS : ZERO;
            i++;
          } else if (byte === 0x74 || byte === 0x66 || byte === 0x6e) {
            const length = literalLength(bytes, i, to);
            if (length < 0) return this.fail("not-json");
            if (length === 0) break reading;
            const kind = byte === 0x6e ? "null" : "boolean";
            if (told) telling.begin(depth, kind, i);
            i += length;
            if (told) telling.end(depth, kind, bytes, i);
            state = AFTER;
          } else if (byte === 0x5d && state === FIRST_VALUE) {
            state = AFTER; // an empty array closes as one with members does
          } else if (isBlank(byte)) {
            i = blanksEnd(bytes, i + 1, to);
          } else return this.fail("not-json");
          continue;

        case STRING:
        case NAME: {
          if (i < strictEnd) {
            i = plainEnd(bytes, i, strictEnd < to ? strictEnd : to);
            if (i === to) break reading;
            if (i === strictEnd) continue;
          } else {
            const quote = quoteEnd(bytes, i, to);
            const escaped = isEscaped(bytes, i, quote);
            if (quote === to) {
              // An open escape waits for its other half.
              i = escaped ? to - 1 : to;
              break reading;
            }
            i = quote;
            if (escaped) {
              i++;
              strictEnd = i + WARY_BYTES;
              continue;
            }
          }
          const stop = bytes[i];
          if (stop === 0x22) {
            if (state === NAME) {
              if (told) telling.named(depth, bytes, i);
              state = COLON;
              i++;
            } else {
              i++;
              if (told) telling.end(depth, "string", bytes, i);
              state = AFTER;
            }
          } else {
            const length = stop === 0x5c ? escapeLength(bytes, i, to) : -1;
            if (length < 0) return this.fail("not-json");
            if (length === 0) break reading;
            i += length;
          }
          continue;
        }

        case AFTER:
          if (!told && i > from) break reading;
          if (byte === 0x2c && depth > 0) {
            if (told) telling.comma(depth, i);
            state = inArray ? VALUE : KEY;
            i++;
          } else if (byte === (inArray ? 0x5d : 0x7d) && depth > 0) {
            i++;
            depth--;
            if (place.watched > depth) place.watched = depth;
            told = depth === place.watched;
            if (told) telling.end(depth, inArray ? "array" : "object", bytes, i);
            inArray = stack[depth] === ARRAY;
          } else if (isBlank(byte)) {
            i = blanksEnd(bytes, i + 1, to);
          } else return this.fail("not-json");
          continue;

        case FIRST_KEY:
        case KEY:
          if (byte === 0x22) {
            i++;
            state = NAME;
            strictEnd = i + strictBytes;
            if (told) telling.keep(i, MAX_KEY_BYTES);
          } else if (byte === 0x7d && state === FIRST_KEY) {
            state = AFTER;
          } else if (isBlank(byte)) {
            i = blanksEnd(bytes, i + 1, to);
          } else return this.fail("not-json");
          continue;

        case COLON:
          if (byte === 0x3a) {
            state = VALUE;
            i++;
          } else if (isBlank(byte)) {
            i = blanksEnd(bytes, i + 1, to);
          } else return this.fail("not-json");
          continue;

        case INTEGER:
        case FRACTION:
        case EXPONENT:
        case ZERO:
          if (state !== ZERO) {
            i = digitsEnd(bytes, i, to);
            if (i === to) break reading;
          }
          if (bytes[i] === 0x2e && (state === INTEGER || state === ZERO)) {
            state = DOT;
            i++;
          } else if (((bytes[i] as number) | 0x20) === 0x65 && state !== EXPONENT) {
            state = E;
            i++;
          } else {
            if (told) telling.end(depth, "number", bytes, i);
            state = AFTER;
          }
          continue;

        default:
          // MINUS, DOT, E and E_SIGN: a digit must follow, or a sign after the E.
          if (state === E && (byte === 0x2b || byte === 0x2d)) state = E_SIGN;
          else if (!isDigit(byte)) return this.fail("not-json");
          else state = state === MINUS ? (byte === 0x30 ? ZERO : INTEGER) : state === DOT ? FRACTION : EXPONENT;
          i++;
      }
    }

    place.state = state;
    place.depth = depth;
    place.strict = Math.max(0, strictEnd - i);
    telling.stopped(i);
    return i;
  }

  /** The first byte that must stay in the buffer when the scan stopped at `next`. */
  held(next: number): number {
    return this.telling.held(next);
  }

  /** The buffer's first `count` bytes are gone: what is kept now stands that much nearer to its beginning. */
  shift(count: number): void {
    this.telling.shift(count);
  }

  /** No more bytes come and none were left over at `next`: is the text whole? */
  finish(bytes: Uint8Array, next: number): boolean {
    const { place } = this;
    if (this.fault === undefined && place.depth === 0) {
      if (place.state === AFTER) return true;
      if (place.state === ZERO || place.state === INTEGER || place.state === FRACTION || place.state === EXPONENT) {
        this.telling.end(0, "number", bytes, next);
        place.state = AFTER;
        return true;
      }
    }
    this.fault ??= "not-json";
    return false;
  }

  private fail(fault: JsonFault): -1 {
    this.fault = fault;
    return -1;
  }
}
