// The scanner's fast path: skips values that no listener watches, a whole token at a time. It reports no faults: in
// front of a token that is cut off, long, unusual or wrong it stops, and the scanner reads on from there.
import { blanksEnd, digitsEnd, escapeLength, isDigit, literalLength, plainEnd } from "./json-bytes.ts";
import { AFTER, ARRAY, type JsonPlace, KEY, MAX_DEPTH, OBJECT, STRICT_BYTES, VALUE } from "./json-place.ts";

/** How many bytes after a token's first are read without a check that they are there. */
const AHEAD_BYTES = 8;

/** May be asked inside a container that is not watched, in front of a value or a key, or after a value. */
export function canSkim({ state, depth, watched }: JsonPlace): boolean {
  return depth > watched && (state === AFTER || state === VALUE || state === KEY);
}

/** Begins no token from `enough` on, and reads none that does not end before `to`; returns where it stopped. */
export function skim(place: JsonPlace, bytes: Uint8Array, from: number, enough: number, to: number): number {
  const last = to - AHEAD_BYTES;
  const stop = enough < last ? enough : last;
  const stack = place.stack;
  const outermost = place.watched + 1;
  let depth = place.depth;
  let inArray = stack[depth] === ARRAY;
  let state = place.state;
  let i = from;

  while (i < stop) {
    const byte = bytes[i] as number;
    let end = i;
    if (state === VALUE) {
      if (byte >= 0x31 && byte <= 0x39) {
        end++;
        while (end < last && isDigit(bytes[end] as number)) end++;
        const next = bytes[end] as number;
        if (end >= last || next === 0x2e || (next | 0x20) === 0x65) end = numberEnd(bytes, i, last);
      } else if (byte === 0x22) end = stringEnd(bytes, i, last);
      else if (byte <= 0x30 && byte > 0x20) end = numberEnd(bytes, i, last);
      else if (byte === 0x7b || byte === 0x5b) {
        const opensArray = byte === 0x5b;
        const inside = blanksEnd(bytes, i + 1, last);
        if (inside >= last || depth === MAX_DEPTH) break;
        if (bytes[inside] === (opensArray ? 0x5d : 0x7d)) end = inside + 1;
        else {
          depth++;
          stack[depth] = opensArray ? ARRAY : OBJECT;
          inArray = opensArray;
          state = opensArray ? VALUE : KEY;
          i = inside;
          continue;
        }
      } else if (byte === 0x74 || byte === 0x66 || byte === 0x6e) end = i + Math.max(0, literalLength(bytes, i, to));
      if (end > i) {
        if (bytes[end] === 0x2c) {
          i = end + 1;
          if (!inArray) state = KEY;
        } else {
          i = end;
          state = AFTER;
        }
        continue;
      }
    } else if (state === AFTER) {
      if (byte === 0x2c) {
        state = inArray ? VALUE : KEY;
        i++;
        continue;
      }
      if (byte === (inArray ? 0x5d : 0x7d) && depth > outermost) {
        depth--;
        inArray = stack[depth] === ARRAY;
        i++;
        continue;
      }
    } else if (byte === 0x22) {
      end = stringEnd(bytes, i, last);
      if (end === i || bytes[end] !== 0x3a) break;
      state = VALUE;
      i = end + 1;
      continue;
    }
    end = blanksEnd(bytes, i, last);
    if (end === i) break;
    i = end;
  }

  place.depth = depth;
  place.state = state;
  return i;
}

/** Behind the quote that ends the string at `at`; `at` itself where there is none soon. */
function stringEnd(bytes: Uint8Array, at: number, to: number): number {
  const strict = Math.min(at + STRICT_BYTES, to);
  for (let i = at + 1; i < strict; ) {
    i = plainEnd(bytes, i, strict);
    if (i >= strict) return at;
    if (bytes[i] === 0x22) return i + 1;
    const length = bytes[i] === 0x5c ? escapeLength(bytes, i, strict) : -1;
    if (length <= 0) return at;
    i += length;
  }
  return at;
}

/** Behind the number at `at`; `at` itself where it is none, or does not end before `to`. */
function numberEnd(bytes: Uint8Array, at: number, to: number): number {
  let i = at;
  if (bytes[i] === 0x2d) i++;
  const whole = i;
  if (bytes[i] === 0x30) i++;
  else {
    i = digitsEnd(bytes, i, to);
    if (i === whole) return at;
  }
  if (i < to && bytes[i] === 0x2c) return i;
  if (bytes[i] === 0x2e) {
    const digits = i + 1;
    i = digitsEnd(bytes, digits, to);
    if (i === digits) return at;
  }
  if (((bytes[i] as number) | 0x20) === 0x65) {
    i++;
    if (bytes[i] === 0x2b || bytes[i] === 0x2d) i++;
    const digits = i;
    i = digitsEnd(bytes, digits, to);
    if (i === digits) return at;
  }
  return i < to ? i : at;
}
