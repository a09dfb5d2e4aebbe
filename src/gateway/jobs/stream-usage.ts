// Reads the usage of a stream of events: the last `cost` or `usage` that it states, and how much text it carried.
import { concat } from "../../json/concat.ts";
import { bytesOfText } from "../quota/text-bytes.ts";
import type { CalledModel } from "./called-model.ts";
import { type EventUsage, readEvent } from "./event-usage.ts";
import { costOf } from "./settling.ts";

/** A longer line counts as text, and is neither held nor read. */
const maxLineLength = 256 * 1024;
const bytesPerToken = 4;
const lineEnd = 0x0a;

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
  /** The line that has not ended is longer than what is read. */
  #isLong = false;
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
    const rest = this.#isLong ? this.#passLong(piece) : piece;
    if (rest.byteLength > 0) this.#takeText(this.#decoder.decode(rest, { stream: true }));
  }

  /** There was no more of it. */
  end(): void {
    this.#line(this.#takeHeld(""));
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

  /** Counts a long line's bytes; returns what follows the line in this piece. */
  #passLong(piece: Uint8Array): Uint8Array {
    const end = piece.indexOf(lineEnd);
    this.#isLong = end < 0;
    this.#textBytes += this.#isLong ? piece.byteLength : end;
    return this.#isLong ? piece.subarray(piece.byteLength) : piece.subarray(end + 1);
  }

  #takeText(text: string): void {
    const lines = text.split("\n");
    const begun = lines.pop() ?? "";
    for (const line of lines) this.#line(this.#takeHeld(line));
    this.#hold(begun);
    if (this.#heldLength > maxLineLength) this.#beginLong();
  }

  #beginLong(): void {
    this.#isLong = true;
    this.#pieces += 1;
    this.#textBytes += bytesOfText(this.#held);
    this.#saidMore = true;
    this.#held.length = 0;
    this.#heldLength = 0;
    // Resets the decoder: the rest of a character that it began will not come.
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
    if (!line.startsWith("data:")) return;
    const data = line.slice("data:".length).trim();
    if (data === "[DONE]" || data === "") return;
    const { textBytes, said } = readEvent(data);
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
