// What passed in a stream of events: its last word on cost or usage, and how much text there was.
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

export class SeenStream {
  readonly #keepBytes: number;
  readonly #look: ((piece: Uint8Array) => void) | undefined;
  #rest = "";
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

  /** Reads to the end, or to where the stream was cut: what nobody listens to is made no further. */
  async read(stream: ReadableStream<Uint8Array>, leaving?: AbortSignal): Promise<this> {
    const reader = stream.getReader({ mode: "byob" });
    leaving?.addEventListener("abort", () => void reader.cancel("nobody listens").catch(() => {}), { once: true });
    const decoder = new TextDecoder();
    let buffer: ArrayBufferLike = new ArrayBuffer(bufferBytes);
    try {
      for (;;) {
        const least = this.#bytes < promptBytes ? 1 : readBytes;
        const { value, done }: { value?: Uint8Array | undefined; done: boolean } = await reader.readAtLeast(
          least,
          new Uint8Array(buffer),
        );
        if (value) {
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
    this.#line(this.#rest);
    if (this.#isCut) this.#countUnseen();
    return this;
  }

  #keep(piece: Uint8Array): void {
    this.#bytes += piece.byteLength;
    if (this.#bytes > this.#keepBytes) this.#kept = undefined;
    this.#kept?.push(piece.slice());
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split("\n");
    const rest = lines.pop() ?? "";
    this.#rest = rest.slice(-maxLineLength);
    this.#textBytes += rest.length - this.#rest.length;
    for (const line of lines) this.#line(line);
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
