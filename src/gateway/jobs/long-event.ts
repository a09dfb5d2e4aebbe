// An event that is too long to be held, e.g. one with a picture in it: it is read as it passes.
import { concat } from "../../json/concat.ts";
import { type JsonListener, type Kind, SKIM, WATCH } from "../../json/json-listener.ts";
import { JsonScanner } from "../../json/json-scanner.ts";
import { Names, parsed } from "../../json/names.ts";
import { type EventUsage, labels } from "./event-usage.ts";

/** A longer cost or usage is not read. */
const maxSaidBytes = 4 * 1024;
const quotesBytes = 2;
const said: ReadonlySet<string> = new Set(["cost", "usage"]);
const names = new Names(["choices", ...said, ...labels]);

/** Finds what `readEvent` finds. Of the text, it counts the bytes as they are written, with their escapes. */
export class LongEvent {
  readonly #reader = new EventReader();
  readonly #scanner = new JsonScanner(this.#reader);
  /** What the scanner keeps of the pieces before, and where it goes on in it. */
  #held = new Uint8Array();
  #next = 0;
  #isJson = true;
  #bytes = 0;

  /** The next piece, which is the caller's again afterwards. */
  take(piece: Uint8Array): void {
    this.#bytes += piece.byteLength;
    try {
      if (this.#isJson) this.#scan(this.#held.length > 0 ? concat([this.#held, piece]) : piece);
    } catch {
      // A name or a usage is no UTF-8.
      this.#isJson = false;
    }
  }

  #scan(bytes: Uint8Array): void {
    const next = this.#scanner.scan(bytes, this.#next, bytes.length);
    this.#isJson = next >= 0;
    const kept = this.#scanner.held(next);
    this.#scanner.shift(kept);
    this.#held = bytes.slice(kept);
    this.#next = next - kept;
  }

  /** What is no JSON object is text as a whole. */
  end(): EventUsage {
    const isObject = this.#isJson && this.#scanner.finish(this.#held, this.#next) && this.#reader.isObject;
    return isObject ? this.#reader.usage : { textBytes: this.#bytes, said: undefined };
  }
}

class EventReader implements JsonListener {
  isObject = false;
  /** Where there are choices, the text is theirs. */
  #choicesBytes: number | undefined;
  #otherBytes = 0;
  #said: Record<string, unknown> | undefined;
  /** Of the next value, where it is one that matters. */
  #name: string | undefined;
  /** The event's member that is being read. */
  #member: string | undefined;
  /** The string that is being read is no label. */
  #isText = false;

  get usage(): EventUsage {
    return { textBytes: this.#choicesBytes ?? this.#otherBytes, said: this.#said };
  }

  key(_depth: number, bytes: Uint8Array, start: number, end: number): void {
    this.#name = names.find(bytes, start, end);
  }

  value(depth: number, kind: Kind): number {
    const name = this.#name ?? "";
    this.#name = undefined;
    if (depth === 0) this.isObject = kind === "object";
    if (depth === 1) this.#member = name;
    if (depth === 1 && name === "choices" && kind !== "null") this.#choicesBytes = 0;
    this.#isText = kind === "string" && !labels.has(name);
    if (depth === 1 && said.has(name)) return maxSaidBytes;
    return labels.has(name) ? SKIM : WATCH;
  }

  end(_depth: number, kind: Kind, bytes: Uint8Array, start: number, end: number, size: number): void {
    if (kind === "string" && this.#isText) this.#countText(size - quotesBytes);
    const isSaid = start >= 0 && kind !== "null";
    if (isSaid && this.#member) this.#said = { ...this.#said, [this.#member]: parsed(bytes, start, end) };
  }

  #countText(bytes: number): void {
    if (this.#member === "choices") this.#choicesBytes = (this.#choicesBytes ?? 0) + bytes;
    else this.#otherBytes += bytes;
  }
}
