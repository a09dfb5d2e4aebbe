// Reads the usage of a stream of events: the last `cost` or `usage` that it states, and how much text it carried.
import { concat } from "../../json/concat.ts";
import type { CalledModel } from "./called-model.ts";
import { type EventUsage, readEvent } from "./event-usage.ts";
import { LongEvent } from "./long-event.ts";
import { costOf } from "./settling.ts";

/** A longer line is read as it passes. */
const maxHeldLength = 16 * 1024;
const bytesPerToken = 4;
const lineEnd = 0x0a;
const field = "data:";
const encoder = new TextEncoder();

/** What the caller owes for a stream. */
export interface Bill {
  /** As the upstream said it; null where it said nothing. */
  readonly costMicroUsd: number | null;
  /** What the handed-out text is worth. Undefined if the cost was stated, or the model has no price per token. */
  readonly assumedMicroUsd?: number;
}

export class StreamUsage {
  readonly #keepBytes: number;
  readonly #decoder = new TextDecoder();
  /** Of a line that has not ended. */
  readonly #held: string[] = [];
  #heldLength = 0;
  /** In the line that has not ended, where that is too long to be held. */
  #long: LongEvent | undefined;
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
    if (rest.byteLength > 0) this.#takeText(this.#decoder.decode(rest, { stream: true }));
  }

  /** There was no more of it. */
  end(): void {
    if (this.#long) this.#count(this.#long.end());
    else this.#line(this.#takeHeld(""));
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

  /** Returns what follows the line in this piece. */
  #takeLong(long: LongEvent, piece: Uint8Array): Uint8Array {
    const end = piece.indexOf(lineEnd);
    if (end < 0) {
      long.take(piece);
      return piece.subarray(piece.byteLength);
    }
    long.take(piece.subarray(0, end));
    this.#count(long.end());
    this.#long = undefined;
    return piece.subarray(end + 1);
  }

  #takeText(text: string): void {
    const lines = text.split("\n");
    const begun = lines.pop() ?? "";
    for (const line of lines) this.#line(this.#takeHeld(line));
    this.#hold(begun);
    if (this.#heldLength > maxHeldLength) this.#beginLong(this.#takeHeld(""));
  }

  /** A line that is no event is read as one, and counts as text. */
  #beginLong(begun: string): void {
    this.#long = new LongEvent();
    this.#long.take(encoder.encode(begun.startsWith(field) ? begun.slice(field.length) : begun));
    // Resets the decoder: the rest of a character that it began goes to the long event.
    this.#decoder.decode();
  }

  /** In the pieces that it comes in: a long line is not put together anew with each of them. */
  #hold(text: string): void {
    if (text === "") return;
    this.#held.push(text);
    this.#heldLength += text.length;
  }

  /** A line whose end this is. */
  #takeHeld(end: string): string {
    if (this.#heldLength === 0) return end;
    const line = this.#held.join("") + end;
    this.#held.length = 0;
    this.#heldLength = 0;
    return line;
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
