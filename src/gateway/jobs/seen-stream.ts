// What passed in a stream of events: its last word on cost or usage, and how much text there was.
import { ReadAhead } from "./read-ahead.ts";
import { readEvent, type SeenEvent } from "./seen-event.ts";
import { costOf } from "./settling.ts";
import type { Target } from "./target.ts";

const bufferBytes = 64 * 1024;
/** So much is read as it comes: of a short stream that is cut, nothing is lost. */
const promptBytes = 16 * 1024;
/** Then larger reads cost less; what a cut leaves of one half filled is never seen. */
const readBytes = 2 * 1024;
/** Of a longer line the beginning counts as text, unread. */
const maxLineLength = 256 * 1024;
const bytesPerToken = 4;

/** What the caller owes for a stream. */
export interface Bill {
  /** As the upstream said it; null where it said nothing. */
  readonly costMicroUsd: number | null;
  /** What was handed out is worth so much; undefined where nobody can tell. */
  readonly assumedMicroUsd?: number;
}

/** Who gets the stream itself. */
export interface Client {
  /** Resolves when nothing of the stream waits for it any more. */
  readonly done: Promise<void>;
  letGo(): void;
}

export class SeenStream {
  readonly #keepBytes: number;
  readonly #look: ((piece: Uint8Array) => void) | undefined;
  /** Of a line that has not ended. */
  readonly #held: string[] = [];
  #heldLength = 0;
  #bytes = 0;
  #pieces = 0;
  #textBytes = 0;
  #said: SeenEvent["said"];
  /** Text came after what was said: it is not the whole truth. */
  #saidMore = false;
  #isCut = false;
  #kept: Uint8Array[] | undefined = [];

  /** A copy of the stream is kept as long as it has not more than so many bytes. */
  constructor(keepBytes = 0, look?: (piece: Uint8Array) => void) {
    this.#keepBytes = keepBytes;
    this.#look = look;
  }

  /**
   * Reads to the end, or to where the stream was cut: what nobody listens to is made no further. Ahead of a client that does
   * not read it goes so far, and then lets it go.
   */
  async read(stream: ReadableStream<Uint8Array>, leaving?: AbortSignal, client?: Client): Promise<this> {
    let ahead = client && new ReadAhead(client.done);
    const reader = stream.getReader({ mode: "byob" });
    leaving?.addEventListener("abort", () => void reader.cancel("nobody listens").catch(() => {}), { once: true });
    const decoder = new TextDecoder();
    let buffer: ArrayBufferLike = new ArrayBuffer(bufferBytes);
    try {
      for (;;) {
        if (ahead && !(await ahead.mayRead())) {
          client?.letGo();
          ahead = undefined;
        }
        const least = this.#bytes < promptBytes ? 1 : readBytes;
        const askedAt = Date.now();
        const { value, done }: { value?: Uint8Array | undefined; done: boolean } = await reader.readAtLeast(
          least,
          new Uint8Array(buffer),
        );
        if (value) {
          ahead?.brought(value.byteLength, Date.now() - askedAt);
          this.#look?.(value);
          this.#keep(value);
          this.#take(decoder.decode(value, { stream: true }));
          buffer = value.buffer;
        }
        if (done || !value || value.byteLength < least) break;
      }
    } catch {
      this.#isCut = true;
    }
    this.#isCut ||= leaving?.aborted === true;
    this.#line(this.#held.join(""));
    if (this.#isCut) this.#countUnseen();
    return this;
  }

  #keep(piece: Uint8Array): void {
    this.#bytes += piece.byteLength;
    if (this.#bytes > this.#keepBytes) this.#kept = undefined;
    this.#kept?.push(piece.slice());
  }

  #take(text: string): void {
    const [first = "", ...more] = text.split("\n");
    this.#hold(first);
    for (const begun of more) {
      this.#line(this.#held.splice(0).join(""));
      this.#heldLength = 0;
      this.#hold(begun);
    }
  }

  /** In the pieces that it comes in: a long line is not put together anew with each of them. */
  #hold(text: string): void {
    this.#held.push(text);
    this.#heldLength += text.length;
    while (this.#heldLength - (this.#held[0]?.length ?? 0) > maxLineLength) {
      const length = this.#held.shift()?.length ?? 0;
      this.#heldLength -= length;
      this.#textBytes += length;
    }
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
  }

  /** At most one large read: it counts as full, with as much text as what was seen had. */
  #countUnseen(): void {
    if (this.#bytes < promptBytes) return;
    const share = 1 + readBytes / this.#bytes;
    this.#pieces = Math.ceil(this.#pieces * share);
    this.#textBytes = Math.ceil(this.#textBytes * share);
  }

  bill(target: Target, requestBytes: number): Bill {
    const said = this.#said && costOf(this.#said, target);
    const price = target.model?.tokens;
    if (said !== undefined && (!this.#saidMore || !price)) return { costMicroUsd: said };
    if (!price) return { costMicroUsd: null };
    const written = Math.max(this.#pieces, Math.ceil(this.#textBytes / bytesPerToken));
    const seen = price.cost(Math.ceil(requestBytes / bytesPerToken), written);
    return { costMicroUsd: null, assumedMicroUsd: Math.max(seen, said ?? 0) };
  }

  /** All of it, where it came to its own end and was not too large to keep. */
  kept(): Uint8Array | undefined {
    if (this.#isCut || !this.#kept) return undefined;
    const whole = new Uint8Array(this.#bytes);
    let at = 0;
    for (const piece of this.#kept) {
      whole.set(piece, at);
      at += piece.byteLength;
    }
    return whole;
  }
}
