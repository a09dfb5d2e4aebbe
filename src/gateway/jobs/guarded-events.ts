// A stream of events on its way to a client, and a copy of it to be read for what it cost: neither goes on behind our key.
import type { SecretSearch } from "../../wire/secret-search.ts";
import { SecretStream } from "../../wire/secret-stream.ts";
import { logOwnKey } from "../own-keys.ts";

/** So much is looked at before it leaves: that is where errors are told. Of the rest a part may have left by then. */
const guardedBytes = 16 * 1024;
const pieceBytes = 4 * 1024;

export class GuardedEvents {
  readonly client: ReadableStream<Uint8Array>;
  readonly copy: ReadableStream<Uint8Array>;
  /** Our key was found, or the client left, where nobody comes back for the rest. */
  readonly copyOver: AbortSignal;
  /** Resolves when all has passed, or nothing more does. */
  readonly done: Promise<void>;
  readonly #found = new AbortController();
  readonly #search: SecretSearch;
  readonly #seen: SecretStream;
  readonly #over: AbortSignal;
  readonly #letGo = new AbortController();

  constructor(events: ReadableStream<Uint8Array>, search: SecretSearch, leaving: AbortSignal | undefined) {
    const [passing, copy] = events.tee();
    const { readable, writable } = new IdentityTransformStream();
    this.#search = search;
    this.#seen = new SecretStream(search);
    this.#over = AbortSignal.any([this.#found.signal, this.#letGo.signal, ...(leaving ? [leaving] : [])]);
    this.copyOver = leaving ? this.#over : this.#found.signal;
    this.client = readable;
    this.copy = copy;
    this.done = this.#pass(passing, writable).catch(() => {});
  }

  /** The client does not read. */
  letGo(): void {
    this.#letGo.abort(new Error("does not read"));
  }

  /** All of the stream is here: what waits for the client does not wait for ever. */
  async doneWithin(ms: number): Promise<void> {
    const timer = setTimeout(() => this.letGo(), ms);
    await this.done;
    clearTimeout(timer);
  }

  /** Called with each piece of the copy. */
  look(piece: Uint8Array): void {
    if (!this.copyOver.aborted && this.#seen.take(piece) === undefined) this.#end();
  }

  #end(): void {
    if (this.#found.signal.aborted) return;
    logOwnKey();
    this.#found.abort(new Error("cut off in front of a key"));
  }

  async #pass(passing: ReadableStream<Uint8Array>, writable: WritableStream<Uint8Array>): Promise<void> {
    if (await this.#passHead(passing, writable)) await passing.pipeTo(writable, { signal: this.#over });
  }

  /** The first part, each piece as it comes; whether there is more. */
  async #passHead(passing: ReadableStream<Uint8Array>, writable: WritableStream<Uint8Array>): Promise<boolean> {
    const reader = passing.getReader({ mode: "byob" });
    const writer = writable.getWriter();
    writer.closed.catch(() => {});
    const giveUp = () => void Promise.allSettled([reader.cancel(this.#over.reason), writer.abort(this.#over.reason)]);
    this.#over.addEventListener("abort", giveUp, { once: true });
    try {
      const stream = new SecretStream(this.#search);
      for (let passed = 0; passed < guardedBytes || stream.held.length > 0; ) {
        const { value, done } = await reader.read(new Uint8Array(pieceBytes));
        const clear = value && stream.take(value);
        if (value && !clear) this.#end();
        this.#over.throwIfAborted();
        passed += value?.byteLength ?? 0;
        if (clear?.length) await writer.write(clear);
        if (!done) continue;
        if (stream.held.length > 0) await writer.write(stream.held);
        await writer.close();
        return false;
      }
    } catch (error) {
      await Promise.allSettled([reader.cancel(error), writer.abort(error)]);
      return false;
    } finally {
      this.#over.removeEventListener("abort", giveUp);
    }
    reader.releaseLock();
    writer.releaseLock();
    return true;
  }
}
