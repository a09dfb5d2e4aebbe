// Writes to a client, and gives up on one that has stopped reading.

/** A client that took nothing for so long takes nothing any more. */
const patienceMs = 30_000;
/** How much is written at once: small enough to see that a slow client still reads. */
const pieceBytes = 16 * 1024;

export class WatchedWriter {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #gone = new AbortController();
  #last: Promise<void> = Promise.resolve();
  #waitsSince: number | undefined;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(writable: WritableStream<Uint8Array>) {
    this.#writer = writable.getWriter();
    this.#writer.closed.catch(() => {});
    this.#watch(patienceMs);
  }

  /** Aborted when the client was let go. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Resolves when the client has taken it, rejects when it left or was let go. */
  write(bytes: Uint8Array): Promise<void> {
    const written = this.#last.then(() => this.#write(bytes));
    this.#last = written.catch(() => {});
    return written;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; at += pieceBytes) {
      this.#waitsSince = Date.now();
      await this.#writer.write(bytes.subarray(at, at + pieceBytes));
    }
    this.#waitsSince = undefined;
  }

  async close(): Promise<void> {
    await this.#last;
    this.#waitsSince = Date.now();
    await this.#writer.close().finally(() => clearTimeout(this.#timer));
  }

  /** One timer for all writes: each would pay for its own. */
  #watch(afterMs: number): void {
    this.#timer = setTimeout(() => {
      const now = Date.now();
      // Ahead of the clock, which was set back: it has waited since now.
      if (this.#waitsSince !== undefined && this.#waitsSince > now) this.#waitsSince = now;
      const restMs = (this.#waitsSince ?? now) + patienceMs - now;
      if (restMs > 0) this.#watch(restMs);
      else this.letGo(new Error("does not read"));
    }, afterMs);
  }

  /** Releases the stream for another writer. */
  releaseLock(): void {
    clearTimeout(this.#timer);
    this.#writer.releaseLock();
  }

  letGo(reason: unknown): void {
    clearTimeout(this.#timer);
    this.#gone.abort(reason);
    this.#writer.abort(reason).catch(() => {});
  }
}
