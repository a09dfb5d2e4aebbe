// A body that is held whole: its bytes, or of a short one the text that the runtime read. On its way to a string an ArrayBuffer
// and a decoder cost more than all else that is done to a poll's answer.
import type { JsonFault } from "../json/json-scanner.ts";
import type { SecretSearch } from "../json/secret-search.ts";
import { type ParsedJson, parseJson, parseShallow, shallowBytes } from "./body.ts";

/** Whether a body of this length is read as text: no JSON of so few bytes is too deep. */
export function isShort(bytes: number | undefined): bytes is number {
  return bytes !== undefined && bytes <= shallowBytes;
}

const encoder = new TextEncoder();
const markBytes = 3;

export class HeldBody {
  readonly byteLength: number;
  #bytes: Uint8Array | undefined;
  readonly #text: string | undefined;
  /** A byte order mark may have stood before the text. */
  readonly #mayBeMarked: boolean;

  private constructor(held: Uint8Array | string, byteLength: number, mayBeMarked: boolean) {
    if (typeof held === "string") this.#text = held;
    else this.#bytes = held;
    this.byteLength = byteLength;
    this.#mayBeMarked = mayBeMarked;
  }

  static ofBytes(bytes: Uint8Array): HeldBody {
    return new HeldBody(bytes, bytes.byteLength, false);
  }

  /** With the length that was stated for its bytes. */
  static ofText(text: string, statedBytes: number, mayBeMarked = false): HeldBody {
    return new HeldBody(text, statedBytes, mayBeMarked);
  }

  get bytes(): Uint8Array {
    this.#bytes ??= encoder.encode(this.#text);
    return this.#bytes;
  }

  json(): ParsedJson | { readonly fault: JsonFault } {
    const text = this.#text;
    if (text === undefined) return parseJson(this.bytes);
    return isDecoded(text, this.byteLength, this.#mayBeMarked) ? parseShallow(text) : { fault: "not-json" };
  }

  holds(secrets: SecretSearch): boolean {
    return this.#text === undefined ? secrets.finds(this.bytes) : secrets.findsInText(this.#text);
  }
}

/**
 * Whether nothing of the bytes was lost. The runtime drops a byte order mark, and writes U+FFFD, of three bytes, for what is
 * no UTF-8: so the length is another then. Only a character of four bytes that lacks its last one passes, as U+FFFD.
 */
function isDecoded(text: string, statedBytes: number, mayBeMarked: boolean): boolean {
  if (text.length === statedBytes && !text.includes("\ufffd")) return true;
  const { byteLength } = encoder.encode(text);
  return byteLength === statedBytes || (mayBeMarked && byteLength === statedBytes - markBytes);
}
