// Reads the usage of a stream of events: the last `cost` or `usage` that it states, and how much text it carried.
import { concat } from "../../json/concat.ts";
import type { CalledModel } from "./called-model.ts";
import { type EventUsage, readEvent } from "./event-usage.ts";
import { LongEvent, type LongLine, noEvent } from "./long-event.ts";
import { costOf } from "./settling.ts";

/** A longer line is read as it passes. */
const maxHeldBytes = 16 * 1024;
const bytesPerToken = 4;
const lineEnd = 0x0a;
const field = "data:";
const decoder = new TextDecoder();
const nothing = new Uint8Array();

/** What the caller owes for a stream. */
export interface Bill {
  /** As the upstream said it; null where it said nothing. */
  readonly costMicroUsd: number | null;
  /** What the handed-out text is worth. Undefined if the cost was stated, or the model has no price per token. */
  readonly assumedMicroUsd?: number;
}

export class StreamUsage {
  readonly #keepBytes: number;
  /** The line that has not ended: the first bytes of a buffer that grows. */
  #held: Uint8Array = nothing;
  #heldBytes = 0;
  /** The same, where it is too long to be held. */
  #long: LongLine | undefined;
  #bytes = 0;
  #pieces = 0;
  #textBytes = 0;
  #said: EventUsage["said"];
  /** Text came after the last stated cost or usage, so that one is too low. */
  #saidMore = false;
  /** The last one came with text, as a count of what was written so far: perhaps of one choice of several. */
  #isInterim = false;
  #isCut = false;
  #kept: Uint8Array[] | undefined = [];

  /** A copy of the stream is kept as long as it has not more than so many bytes. */
  constructor(keepBytes = 0) {
    this.#keepBytes = keepBytes;
  }

  /** The next piece, which is the caller's again afterwards. */
  take(piece: Uint8Array): void {
    this.#keep(piece);
    const rest = this.#long ? this.#takeLong(this.#long, piece) : piece;
    const end = rest.lastIndexOf(lineEnd) + 1;
    if (end > 0) this.#readLines(rest.subarray(0, end));
    this.#hold(rest.subarray(end));
    if (this.#heldBytes > maxHeldBytes) this.#beginLong(this.#takeHeld());
  }

  /** There was no more of it. */
  end(): void {
    if (this.#long) this.#count(this.#long.end());
    else this.#readLines(nothing);
  }

  /** The stream was cut; at most `unseenBytes` more had passed to the client. */
  cut(unseenBytes: number): void {
    this.#isCut = true;
    this.end();
    this.#countUnseen(unseenBytes);
  }

  #keep(piece: Uint8Array): void {
    this.#bytes += piece.byteLength;
    if (this.#bytes > this.#keepBytes) this.#kept = undefined;
    this.#kept?.push(piece.slice());
  }

  #beginLong(line: Uint8Array): void {
    const isEvent = decoder.decode(line.subarray(0, field.length)) === field;
    this.#long = isEvent ? new LongEvent() : noEvent;
    this.#long.take(line.subarray(field.length));
  }

  /** Returns what follows the line in this piece. */
  #takeLong(long: LongLine, piece: Uint8Array): Uint8Array {
    const end = piece.indexOf(lineEnd);
    if (end < 0) {
      long.take(piece);
      return nothing;
    }
    long.take(piece.subarray(0, end));
    this.#count(long.end());
    this.#long = undefined;
    return piece.subarray(end + 1);
  }

  #hold(bytes: Uint8Array): void {
    const length = this.#heldBytes + bytes.byteLength;
    if (length > this.#held.byteLength) {
      const larger = new Uint8Array(2 * length);
      larger.set(this.#held);
      this.#held = larger;
    }
    this.#held.set(bytes, this.#heldBytes);
    this.#heldBytes = length;
  }

  /** Valid until something is held again. */
  #takeHeld(): Uint8Array {
    const held = this.#held.subarray(0, this.#heldBytes);
    this.#heldBytes = 0;
    return held;
  }

  /** The lines that end with these bytes: all at once, since each call of the decoder has its price. */
  #readLines(end: Uint8Array): void {
    let bytes = end;
    if (this.#heldBytes > 0) {
      this.#hold(end);
      bytes = this.#takeHeld();
    }
    for (const line of decoder.decode(bytes).split("\n")) this.#line(line);
  }

  #line(line: string): void {
    if (!line.startsWith(field)) return;
    const data = line.slice(field.length).trim();
    if (data !== "[DONE]" && data !== "") this.#count(readEvent(data));
  }

  #count({ textBytes, said }: EventUsage): void {
    if (textBytes > 0) {
      this.#pieces += 1;
      this.#textBytes += textBytes;
      this.#saidMore = true;
    }
    if (!said) return;
    this.#said = said;
    this.#saidMore = false;
    this.#isInterim = textBytes > 0;
  }

  /** Assumes that the unseen bytes were all there, with as much text as the seen ones. */
  #countUnseen(bytes: number): void {
    if (this.#bytes === 0) return;
    const share = 1 + bytes / this.#bytes;
    this.#pieces = Math.ceil(this.#pieces * share);
    this.#textBytes = Math.ceil(this.#textBytes * share);
  }

  bill(target: CalledModel, requestBytes: number): Bill {
    const said = this.#said && costOf(this.#said, target);
    const price = target.model?.tokens;
    const isTotal = !this.#saidMore && !(this.#isInterim && this.#isCut);
    if (said !== undefined && (isTotal || !price)) return { costMicroUsd: said };
    if (!price) return { costMicroUsd: null };
    const written = Math.max(this.#pieces, Math.ceil(this.#textBytes / bytesPerToken));
    const seen = price.cost(Math.ceil(requestBytes / bytesPerToken), written);
    return { costMicroUsd: null, assumedMicroUsd: Math.max(seen, said ?? 0) };
  }

  /** All of it, where it came to its own end and was not too large to keep. */
  kept(): Uint8Array | undefined {
    if (this.#isCut || !this.#kept) return undefined;
    return concat(this.#kept, this.#bytes);
  }
}
