// Checks that bytes are UTF-8 as they come; the strings this makes find quotes faster than the bytes do.

/** Strict: bytes that are not UTF-8 throw, and a byte order mark stays, for JSON.parse to refuse. */
export const utf8 = (): TextDecoder => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Short enough that the strings made by the check die young. */
const SLICE_BYTES = 32 * 1024;

export class Utf8Text {
  readonly #decoder = utf8();
  /** Does the next slice begin inside a character? */
  #split = false;
  /** Where the bytes taken last began, and their slices as text where that is pure ASCII: there a character is a byte. */
  #start = 0;
  readonly #ascii: (string | undefined)[] = [];

  /** The next bytes, from `from` to `to`; false when the text can be no UTF-8 any more. */
  take(bytes: Uint8Array, from: number, to: number): boolean {
    this.#start = from;
    this.#ascii.length = 0;
    try {
      for (let at = from; at < to; at += SLICE_BYTES) {
        const slice = bytes.subarray(at, Math.min(at + SLICE_BYTES, to));
        const text = this.#decoder.decode(slice, { stream: true });
        const split = (slice[slice.length - 1] as number) >= 0x80;
        // As many characters as bytes, none of them begun before or ended after: each is one byte.
        this.#ascii.push(!this.#split && !split && text.length === slice.length ? text : undefined);
        this.#split = split;
      }
      return true;
    } catch {
      return false;
    }
  }

  /** The strings must not outlive the scan: what is there while a write is awaited grows old, and fills the heap. */
  drop(): void {
    this.#ascii.length = 0;
  }

  /** The first quote from `from` on, or `to`. */
  quote(bytes: Uint8Array, from: number, to: number): number {
    let at = from;
    while (at < to) {
      const index = Math.floor((at - this.#start) / SLICE_BYTES);
      const begin = this.#start + index * SLICE_BYTES;
      const end = Math.min(begin + SLICE_BYTES, to);
      const text = this.#ascii[index];
      const found =
        text === undefined ? bytes.subarray(at, end).indexOf(0x22) + at : text.indexOf('"', at - begin) + begin;
      if (found >= at && found < end) return found;
      at = end;
    }
    return to;
  }
}
