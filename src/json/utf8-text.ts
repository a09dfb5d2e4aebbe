// Checks that bytes are UTF-8 as they come, and makes no strings of them.
import { isUtf8 } from "node:buffer";

/** Strict: bytes that are not UTF-8 throw, and a byte order mark stays, for JSON.parse to refuse. */
export const utf8 = (): TextDecoder => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class Utf8Text {
  /** The character that the bytes taken so far end in the middle of, and how many bytes of it there are. */
  readonly #begun = new Uint8Array(4);
  #length = 0;

  /** The next bytes, from `from` to `to`; false when the text can be no UTF-8 any more. */
  take(bytes: Uint8Array, from: number, to: number): boolean {
    let at = from;
    for (; this.#length > 0; at++) {
      if (at === to) return true;
      const byte = bytes[at] as number;
      if ((byte & 0xc0) !== 0x80) return false;
      this.#begun[this.#length++] = byte;
      if (this.#length < characterBytes(this.#begun[0] as number)) continue;
      if (!isUtf8(this.#begun.subarray(0, this.#length))) return false;
      this.#length = 0;
    }
    const end = wholeEnd(bytes, at, to);
    this.#begun.set(bytes.subarray(end, to));
    this.#length = to - end;
    return isUtf8(bytes.subarray(at, end));
  }
}

/** Where the character begins that `to` lies in the middle of; `to` itself where there is none. */
function wholeEnd(bytes: Uint8Array, from: number, to: number): number {
  for (let i = to - 1; i >= from && i > to - 4; i--) {
    const byte = bytes[i] as number;
    if ((byte & 0xc0) !== 0x80) return i + characterBytes(byte) > to ? i : to;
  }
  return to;
}

/** The character's length, by its first byte; 1 for a byte that begins no character. */
function characterBytes(first: number): number {
  if (first < 0xc0 || first > 0xf7) return 1;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}
