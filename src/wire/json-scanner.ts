// Reads JSON from bytes as they come: JSON.parse's verdict on the text, and word of the members it is asked to watch.
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
  scalarsEnd,
} from "./json-bytes.ts";
import { type JsonListener, type Kind, MAX_KEY_BYTES, WATCH } from "./json-listener.ts";

export type JsonFault = "not-json" | "too-deep";

/** JSON.parse has no bound, but what parses after us (upstreams, canonical forms) recurses. */
export const MAX_DEPTH = 512;
/** So much of a string is read to the letter. Of the rest only the end is looked for: escapes and controls pass. */
export const STRICT_BYTES = 4096;
/** After an escaped quote in the rest, so much is read to the letter again: where there is one there are more. */
const WARY_BYTES = 256;

/**
 * V8 compiles what is called often sooner and better than what loops long: with one call a buffer, small values took
 * twice the time. No more than `STRICT_BYTES`, so that a string passed over within one step was read to the letter.
 */
const STEP_BYTES = 4 * 1024;

// What the next byte is read as. From ZERO on: inside a number.
const VALUE = 0;
const FIRST_VALUE = 1;
const KEY = 2;
const FIRST_KEY = 3;
const COLON = 4;
const AFTER = 5;
const STRING = 6;
const NAME = 7;
const MINUS = 8;
const ZERO = 9;
const INTEGER = 10;
const DOT = 11;
const FRACTION = 12;
const E = 13;
const E_SIGN = 14;
const EXPONENT = 15;

const OBJECT = 0;
const ARRAY = 1;

/**
 * Does not look at UTF-8: that is checked natively beside it. `scan` may leave a short tail (half an escape, half a
 * literal); the caller keeps the bytes from `held(next)` on in its buffer and hands them in again, in front of the new
 * ones. Its fields are `private`, not `#`: V8 threw away the compiled loop of `scan` each time it came to store a
 * `#field`.
 */
export class JsonScanner {
  fault: JsonFault | undefined;
  private state = VALUE;
  private depth = 0;
  /** How many of the open containers are watched: always the outermost ones. */
  private watched = 0;
  /** How many bytes of the open string are still to be read to the letter. */
  private strict = 0;
  private readonly stack = new Uint8Array(MAX_DEPTH + 1);
  /** Where the kept key or value begins, or -1. Only one is kept at a time: a kept container is not watched. */
  private mark = -1;
  private limit = 0;
  /** Where the open values of watched containers began, counted from the text's beginning. */
  private readonly starts: number[] = [];
  private shifted = 0;
  private readonly listener: JsonListener;
  private readonly findQuote: typeof quoteEnd;

  /** `findQuote`: the first quote from one index on, or the other. */
  constructor(listener: JsonListener, findQuote: typeof quoteEnd = quoteEnd) {
    this.listener = listener;
    this.findQuote = findQuote;
  }

  /** Reads `bytes` from `from` to `to`; returns where to go on, or -1 on a fault. */
  scan(bytes: Uint8Array, from: number, to: number): number {
    let next = from;
    for (let end = from; next >= 0 && end < to; ) {
      end = Math.min(next + STEP_BYTES, to);
      next = this.step(bytes, next, end);
    }
    return next;
  }

  private step(bytes: Uint8Array, from: number, to: number): number {
    const stack = this.stack;
    let state = this.state;
    let depth = this.depth;
    let inArray = stack[depth] === ARRAY;
    let told = depth === this.watched;
    let strictEnd = from + this.strict;
    let i = from;

    reading: while (i < to) {
      const byte = bytes[i] as number;
      switch (state) {
        case FIRST_VALUE:
        case VALUE:
          if (inArray && !told) {
            const past = scalarsEnd(bytes, i, to);
            if (past > i) {
              state = VALUE;
              i = past;
              continue;
            }
          }
          if (byte === 0x22) {
            if (told) this.begin(depth, "string", i);
            state = STRING;
            i++;
            strictEnd = i + STRICT_BYTES;
          } else if (byte >= 0x31 && byte <= 0x39) {
            if (told) this.begin(depth, "number", i);
            state = INTEGER;
            i++;
          } else if (byte === 0x7b || byte === 0x5b) {
            if (depth === MAX_DEPTH) return this.fail("too-deep");
            const watch = told && this.begin(depth, byte === 0x7b ? "object" : "array", i) === WATCH;
            depth++;
            if (watch) this.watched = depth;
            told = watch;
            inArray = byte === 0x5b;
            stack[depth] = inArray ? ARRAY : OBJECT;
            state = inArray ? FIRST_VALUE : FIRST_KEY;
            i++;
          } else if (byte === 0x2d || byte === 0x30) {
            if (told) this.begin(depth, "number", i);
            state = byte === 0x2d ? MINUS : ZERO;
            i++;
          } else if (byte === 0x74 || byte === 0x66 || byte === 0x6e) {
            const length = literalLength(bytes, i, to);
            if (length < 0) return this.fail("not-json");
            if (length === 0) break reading;
            const kind = byte === 0x6e ? "null" : "boolean";
            if (told) this.begin(depth, kind, i);
            i += length;
            if (told) this.end(depth, kind, bytes, i);
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
            const quote = this.findQuote(bytes, i, to);
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
              if (told) this.named(depth, bytes, i);
              state = COLON;
              i++;
            } else {
              i++;
              if (told) this.end(depth, "string", bytes, i);
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
          if (byte === 0x2c && depth > 0) {
            state = inArray ? VALUE : KEY;
            i++;
          } else if (byte === (inArray ? 0x5d : 0x7d) && depth > 0) {
            i++;
            depth--;
            if (this.watched > depth) this.watched = depth;
            told = depth === this.watched;
            if (told) this.end(depth, inArray ? "array" : "object", bytes, i);
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
            strictEnd = i + STRICT_BYTES;
            if (told) this.keep(i, MAX_KEY_BYTES);
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
            if (told) this.end(depth, "number", bytes, i);
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

    this.state = state;
    this.depth = depth;
    this.strict = Math.max(0, strictEnd - i);
    if (this.mark >= 0 && i - this.mark > this.limit) this.mark = -1;
    return i;
  }

  /** The first byte that must stay in the buffer when the scan stopped at `next`. */
  held(next: number): number {
    return this.mark >= 0 ? this.mark : next;
  }

  /** The buffer's first `count` bytes are gone: what is kept now stands that much nearer to its beginning. */
  shift(count: number): void {
    this.shifted += count;
    if (this.mark >= 0) this.mark -= count;
  }

  /** No more bytes come and none were left over at `next`: is the text whole? */
  finish(bytes: Uint8Array, next: number): boolean {
    if (this.fault === undefined && this.depth === 0) {
      if (this.state === AFTER) return true;
      if (this.state === ZERO || this.state === INTEGER || this.state === FRACTION || this.state === EXPONENT) {
        this.end(0, "number", bytes, next);
        this.state = AFTER;
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

  private keep(at: number, limit: number): void {
    this.mark = at;
    this.limit = limit;
  }

  private begin(depth: number, kind: Kind, at: number): number {
    this.starts[depth] = this.shifted + at;
    const wish = this.listener.value(depth, kind, at);
    if (wish > 0) this.keep(at, wish);
    return wish;
  }

  /** Gives up the kept bytes; where they began, or -1. */
  private release(end: number): number {
    const start = this.mark >= 0 && end - this.mark <= this.limit ? this.mark : -1;
    this.mark = -1;
    return start;
  }

  private named(depth: number, bytes: Uint8Array, end: number): void {
    this.listener.key(depth, bytes, this.release(end), end);
  }

  private end(depth: number, kind: Kind, bytes: Uint8Array, end: number): void {
    const size = this.shifted + end - (this.starts[depth] ?? 0);
    this.listener.end(depth, kind, bytes, this.release(end), end, size);
  }
}
