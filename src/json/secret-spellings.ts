// Decodes one character in the spellings of JSON and URLs, also nested ones. `s` is `\u0073` in a JSON string,
// `\\u0073` if that string stands in another one, `%73` in a URL, and `\u002573` if that URL's percent sign is escaped
// in turn. The context is ignored: it could be made to hide what follows.

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const U = 0x75;

/** Three strings deep, a backslash is written as so many. */
const longestRun = 8;
/** What is spelled twice over takes less: `\u0073`, each of whose characters is spelled so in turn, six times six. */
export const longestSpelling = 64;
/** Two layers of spelling take no more steps from one to the next. */
const maxSteps = 4;

/** A character, and the place behind its spelling. */
export interface Spelled {
  readonly code: number;
  readonly end: number;
}

const none: readonly Spelled[] = [];

export function isMark(byte: number): boolean {
  return byte === BACKSLASH || byte === PERCENT;
}

/** The spellings in some bytes, read up to `to`. */
export class Spellings {
  /** Whether a spelling was still open where the bytes end. */
  isOpen = false;
  private readonly bytes: Uint8Array;
  private readonly to: number;
  /** 1 at each character that matters: no other is told. */
  private readonly wanted: Uint8Array;

  constructor(bytes: Uint8Array, to: number, wanted: Uint8Array) {
    this.bytes = bytes;
    this.to = to;
    this.wanted = wanted;
  }

  /** What the backslash or the percent sign at `at` may begin to spell. */
  at(at: number): readonly Spelled[] {
    const mark = this.bytes[at] as number;
    if (this.isIdle(mark, at)) return none;
    const found = this.behind(mark, at + 1, maxSteps, false);
    return found.filter(({ code, end }) => this.wanted[code] === 1 && end - at <= longestSpelling);
  }

  /** Nearly all escapes say at once that they spell nothing that matters: `\n`, `\u4e2d`, `%20`. */
  private isIdle(mark: number, at: number): boolean {
    const { bytes, to } = this;
    let next = at + 1;
    if (mark === BACKSLASH) {
      while (next < to && bytes[next] === BACKSLASH && next - at <= longestRun) next++;
      if (next - at > longestRun) return true;
      if (next >= to) return false;
      const byte = bytes[next] as number;
      if (byte !== U) return byte !== PERCENT && !this.isWantedPunctuation(byte);
      next++;
    }
    const code = this.plainHex(next, mark === PERCENT ? 2 : 4);
    return code >= 0 && this.wanted[code] !== 1 && !isMark(code) && code !== U;
  }

  /** The number that these digits write, all of them as they are; -1 where one is not, or has not come. */
  private plainHex(at: number, digits: number): number {
    let code = 0;
    for (let i = at; i < at + digits; i++) {
      if (i >= this.to) return -1;
      const byte = this.bytes[i] as number;
      if (isMark(byte)) return -1;
      const value = hexValue(byte);
      // No digit at all: as good as a character that nobody looks for.
      if (value < 0) return 0;
      code = code * 16 + value;
    }
    return code;
  }

  /** What a mark that ends at `at` may begin to spell. It may stand behind a backslash itself. */
  private behind(mark: number, at: number, steps: number, isRun: boolean): readonly Spelled[] {
    if (steps === 0) return none;
    if (mark === PERCENT) return this.goOn(this.hex(at, 2, steps - 1), steps, false);
    const { bytes, to } = this;
    let end = at;
    while (end < to && bytes[end] === BACKSLASH && end - at < longestRun) end++;
    if (end >= to) return this.open();
    const inRun = isRun || end > at;
    const byte = bytes[end] as number;
    if (byte === U) return this.goOn(this.hex(end + 1, 4, steps - 1), steps, inRun);
    if (byte !== PERCENT) return this.isWantedPunctuation(byte) ? [{ code: byte, end: end + 1 }] : none;
    return this.behind(PERCENT, end + 1, steps - 1, false).flatMap(({ code, end }) => {
      if (code === U) return this.goOn(this.hex(end, 4, steps - 1), steps, true);
      return code === BACKSLASH || !this.isWantedPunctuation(code) ? none : [{ code, end }];
    });
  }

  /** What was spelled may begin a spelling in turn: as a mark, or as the `u` behind an escaped backslash. */
  private goOn(found: readonly Spelled[], steps: number, inRun: boolean): readonly Spelled[] {
    return found.flatMap((spelled) => {
      const { code, end } = spelled;
      if (isMark(code)) return [spelled, ...this.behind(code, end, steps - 1, true)];
      if (code === U && inRun) return [spelled, ...this.goOn(this.hex(end, 4, steps - 1), steps - 1, true)];
      return [spelled];
    });
  }

  /** Numbers of so many digits, each written as it is or spelled. */
  private hex(at: number, digits: number, steps: number): readonly Spelled[] {
    let found: readonly Spelled[] = [{ code: 0, end: at }];
    for (let digit = 0; digit < digits; digit++) {
      found = found.flatMap(({ code, end }) =>
        this.digits(end, steps).map((next) => ({ code: code * 16 + hexValue(next.code), end: next.end })),
      );
    }
    return found;
  }

  private digits(at: number, steps: number): readonly Spelled[] {
    if (at >= this.to) return this.open();
    const code = this.bytes[at] as number;
    if (!isMark(code)) return hexValue(code) < 0 ? none : [{ code, end: at + 1 }];
    return this.behind(code, at + 1, steps, false).filter((spelled) => hexValue(spelled.code) >= 0);
  }

  private open(): readonly Spelled[] {
    this.isOpen = true;
    return none;
  }

  private isWantedPunctuation(byte: number): boolean {
    return this.wanted[byte] === 1 && !isMark(byte) && !isLetterOrDigit(byte);
  }
}

function isLetterOrDigit(byte: number): boolean {
  const letter = byte | 0x20;
  return (letter >= 0x61 && letter <= 0x7a) || (byte >= 0x30 && byte <= 0x39);
}

/** -1 where it is no hexadecimal digit. */
function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = (byte | 0x20) - 0x61;
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}
