// What passed in a stream of events: its last word on cost or usage, and how many pieces of text there were.
import { costOf } from "./settling.ts";
import type { Target } from "./target.ts";

const bufferBytes = 64 * 1024;
/** Larger reads cost less; what a cut leaves of one half filled is not counted. */
const readBytes = 2 * 1024;
/** An event longer than this is no chunk of text: its middle is not looked at. */
const maxEventLength = 256 * 1024;
const bytesPerToken = 4;

export class SeenStream {
  readonly #requestBytes: number;
  #rest = "";
  #pieces = 0;
  #last: Record<string, unknown> | undefined;

  constructor(requestBytes: number) {
    this.#requestBytes = requestBytes;
  }

  /** Reads to the end, or to where the stream was cut: what nobody listens to is made no further. */
  async read(stream: ReadableStream<Uint8Array>, leaving: AbortSignal): Promise<this> {
    const reader = stream.getReader({ mode: "byob" });
    leaving.addEventListener("abort", () => void reader.cancel("nobody listens").catch(() => {}), { once: true });
    const decoder = new TextDecoder();
    let buffer: ArrayBufferLike = new ArrayBuffer(bufferBytes);
    try {
      for (;;) {
        const { value, done }: { value?: Uint8Array | undefined; done: boolean } = await reader.readAtLeast(
          readBytes,
          new Uint8Array(buffer),
        );
        if (value) {
          this.#take(decoder.decode(value, { stream: true }));
          buffer = value.buffer;
        }
        if (done || !value || value.byteLength < readBytes) return this;
      }
    } catch {
      return this;
    }
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(-maxEventLength);
    for (const line of lines) if (line.startsWith("data:")) this.#event(line.slice("data:".length).trim());
  }

  #event(data: string): void {
    if (data === "[DONE]" || data === "") return;
    this.#pieces += 1;
    if (!/"(cost|usage)"\s*:\s*[^n\s]/.test(data)) return;
    try {
      const value: unknown = JSON.parse(data);
      if (typeof value === "object" && value !== null) this.#last = value as Record<string, unknown>;
    } catch {
      // A half event at the cut: what came before it counts.
    }
  }

  /** In micro-USD: as the stream said, or by the pieces that were seen. Undefined where neither tells. */
  cost(target: Target): number | undefined {
    const said = this.#last && costOf(this.#last, target);
    if (said !== undefined) return said;
    const usage = { input: Math.ceil(this.#requestBytes / bytesPerToken), output: this.#pieces };
    return target.model?.costOf([{ usage }], {});
  }
}
