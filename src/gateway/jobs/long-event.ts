// An event that is too long to be held, e.g. one with a picture in it: it is read as it passes.
import { concat } from "../../json/concat.ts";
import { type JsonListener, type Kind, SKIM, WATCH } from "../../json/json-listener.ts";
import { ALL_BYTES } from "../../json/json-place.ts";
import { JsonScanner } from "../../json/json-scanner.ts";
import { Names, parsed } from "../../json/names.ts";
import { Utf8Text } from "../../json/utf8-text.ts";
import { type EventUsage, labels } from "./event-usage.ts";

/** A longer cost or usage is not read. */
const maxSaidBytes = 4 * 1024;
const quotesBytes = 2;
const names = new Names(["choices", "cost", ...labels]);

/** What takes a long line piece by piece. A piece is the caller's again afterwards. */
export interface LongLine {
  take(piece: Uint8Array): void;
  end(): EventUsage;
}

/** A line that is no event, e.g. a comment. */
export const noEvent: LongLine = { take: () => {}, end: () => ({ textBytes: 0, said: undefined }) };

/**
 * Finds what `readEvent` finds, but for a usage that is long itself, and for text with escapes: these are counted as they
 * are written.
 */
export class LongEvent implements LongLine {
  readonly #reader = new EventReader();
  readonly #scanner = new JsonScanner(this.#reader, ALL_BYTES);
  readonly #text = new Utf8Text();
  #isUtf8 = true;
  /** What the scanner keeps of the pieces before, and where it goes on in it. */
  #held = new Uint8Array();
  #next = 0;
  #bytes = 0;

  take(piece: Uint8Array): void {
    this.#bytes += piece.byteLength;
    this.#isUtf8 &&= this.#text.take(piece, 0, piece.byteLength);
    if (!this.#isUtf8 || this.#scanner.fault) return;
    const bytes = this.#held.length > 0 ? concat([this.#held, piece]) : piece;
    const next = this.#scanner.scan(bytes, this.#next, bytes.length);
    const kept = next < 0 ? bytes.length : this.#scanner.held(next);
    this.#scanner.shift(kept);
    this.#held = bytes.slice(kept);
    this.#next = next - kept;
  }

  /** What is no JSON object is text as a whole. */
  end(): EventUsage {
    const isObject = this.#isUtf8 && this.#scanner.finish(this.#held, this.#next) && this.#reader.isObject;
    return isObject ? this.#reader.found : { textBytes: this.#bytes, said: undefined };
  }
}

class EventReader implements JsonListener {
  isObject = false;
  /** Where there are choices, the text is theirs. */
  #choicesBytes: number | undefined;
  #otherBytes = 0;
  #cost: unknown;
  #usage: unknown;
  /** Of the next value, where it is one that matters. */
  #name = "";
  /** The event's member that is being read. */
  #member = "";
  #isLabel = false;

  get found(): EventUsage {
    const isSaid = (this.#cost ?? this.#usage) !== undefined;
    return {
      textBytes: this.#choicesBytes ?? this.#otherBytes,
      said: isSaid ? { cost: this.#cost, usage: this.#usage } : undefined,
    };
  }

  key(_depth: number, bytes: Uint8Array, start: number, end: number): void {
    this.#name = names.find(bytes, start, end) ?? "";
  }

  value(depth: number, kind: Kind): number {
    const name = this.#name;
    this.#name = "";
    this.#isLabel = labels.has(name);
    if (depth === 0) this.isObject = kind === "object";
    if (depth === 1) {
      this.#member = name;
      if (name === "choices") this.#choicesBytes = kind === "null" ? undefined : 0;
      if (name === "usage" || (name === "cost" && kind === "number")) return maxSaidBytes;
    }
    return this.#isLabel ? SKIM : WATCH;
  }

  end(depth: number, kind: Kind, bytes: Uint8Array, start: number, end: number, size: number): void {
    if (kind === "string" && !this.#isLabel) this.#countText(size - quotesBytes);
    if (depth !== 1) return;
    const value = start >= 0 && kind !== "null" ? parsed(bytes, start, end) : undefined;
    if (this.#member === "usage") this.#usage = value;
    // What is no number is no cost, and hides the usage.
    if (this.#member === "cost") this.#cost = kind === "null" ? undefined : (value ?? Number.NaN);
  }

  #countText(bytes: number): void {
    if (this.#member === "choices" && this.#choicesBytes !== undefined) this.#choicesBytes += bytes;
    else this.#otherBytes += bytes;
  }
}
