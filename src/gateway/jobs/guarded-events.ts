// A stream of events on its way to a client, read as it passes for what it cost: it goes no further than our key.
//
// At first, and as long as it comes in large pieces, each piece is looked at before it leaves: that bounds what waits for
// the client, too. A stream of small pieces is then handed to the runtime, which passes them on at a fraction of the price,
// and what is read is a copy: of what stands behind the key a part may have left by then.
import type { SecretSearch } from "../../wire/secret-search.ts";
import { SecretStream } from "../../wire/secret-stream.ts";
import { WatchedWriter } from "../../wire/watched-writer.ts";
import { logOwnKey } from "../own-keys.ts";
import { ReadAhead } from "./read-ahead.ts";
import type { SeenStream } from "./seen-stream.ts";

/** So much is looked at before it leaves, whatever its pieces: that is where errors are told. */
const guardedBytes = 16 * 1024;
/** What is read at once grows with what comes, and waits for a client that does not read. */
const pieceBytes = { least: 4 * 1024, most: 32 * 1024 };
/** So many small pieces after each other, and more of them will come. */
const smallPieces = 8;
/** A read of the copy waits for so much, for more where it comes fast: larger reads cost less. */
const copyBytes = { least: 2 * 1024, fast: 8 * 1024, most: 32 * 1024 };
const fastMs = 10;
/** A read of what is there takes less. */
const thereMs = 50;

export class GuardedEvents {
  readonly client: ReadableStream<Uint8Array>;
  /** Resolves when all has passed, or nothing more does. */
  readonly done: Promise<void>;
  readonly #events: ReadableStream<Uint8Array>;
  readonly #writable: WritableStream<Uint8Array>;
  readonly #search: SecretSearch;
  readonly #stopped = Promise.withResolvers<void>();
  readonly #found = new AbortController();
  readonly #letGo = new AbortController();
  /** What a cut leaves of a read that is half filled is never seen. */
  #unseenBytes = 0;
  /** Nothing more goes to the client. */
  readonly #passingOver: AbortSignal;
  /** Nothing more is read: our key was found, or the client left, where nobody comes back for the rest. */
  readonly #readingOver: AbortSignal;

  /** `leaving` is aborted when the client leaves; without it the stream is read to its end all the same. */
  constructor(events: ReadableStream<Uint8Array>, search: SecretSearch, leaving: AbortSignal | undefined) {
    const { readable, writable } = new IdentityTransformStream();
    this.#events = events;
    this.#writable = writable;
    this.#search = search;
    this.#passingOver = AbortSignal.any([this.#found.signal, this.#letGo.signal, ...(leaving ? [leaving] : [])]);
    this.#readingOver = leaving ? this.#passingOver : this.#found.signal;
    this.client = readable;
    this.done = this.#stopped.promise;
  }

  /** Reads to the end, or to where the stream was cut: what nobody listens to is made no further. */
  async read(seen: SeenStream): Promise<void> {
    try {
      if (await this.#passPieces(seen)) await this.#passOn(seen);
      this.#readingOver.throwIfAborted();
      seen.end();
    } catch {
      seen.cut(this.#unseenBytes);
      this.#stopped.resolve();
    }
  }

  /** All of the stream is here: what waits for the client does not wait for ever. */
  async doneWithin(ms: number): Promise<void> {
    const timer = setTimeout(() => this.#letGo.abort(new Error("does not read")), ms);
    await this.done;
    clearTimeout(timer);
  }

  /** Each piece as it comes; whether there is more, in pieces so small that the runtime is to pass them on. */
  async #passPieces(seen: SeenStream): Promise<boolean> {
    const pieces = new PieceReader(this.#events);
    const client = new WatchedWriter(this.#writable);
    const listening = new AbortController();
    listen(this.#readingOver, listening, (reason) => pieces.cancel(reason));
    listen(this.#passingOver, listening, (reason) => client.letGo(reason));
    listen(client.gone, listening, (reason) => this.#letGo.abort(reason));
    const guarded = new SecretStream(this.#search);
    try {
      for (let passed = 0; ; ) {
        const { piece, isLast } = await pieces.next();
        this.#readingOver.throwIfAborted();
        const clear = guarded.take(piece);
        if (!clear) throw this.#endAtKey();
        seen.take(piece);
        await this.#write(client, clear);
        if (isLast) break;
        passed += piece.byteLength;
        const isClear = passed >= guardedBytes && guarded.held.length === 0;
        if (isClear && pieces.areSmall && !this.#passingOver.aborted) {
          pieces.releaseLock();
          client.releaseLock();
          return true;
        }
      }
      await this.#write(client, guarded.held);
      client.close().then(this.#stopped.resolve, this.#stopped.resolve);
      return false;
    } catch (error) {
      client.letGo(error);
      pieces.cancel(error);
      throw error;
    } finally {
      listening.abort();
    }
  }

  /** A client that is gone is written nothing; where it comes back for the answer, all of it is read. */
  async #write(client: WatchedWriter, bytes: Uint8Array): Promise<void> {
    if (bytes.byteLength === 0 || this.#passingOver.aborted) return;
    try {
      await client.write(bytes);
    } catch (error) {
      this.#letGo.abort(error);
      this.#readingOver.throwIfAborted();
    }
  }

  /** The rest goes by itself, and its copy is read. */
  async #passOn(seen: SeenStream): Promise<void> {
    const [passing, copy] = this.#events.tee();
    const passed = passing.pipeTo(this.#writable, { signal: this.#passingOver });
    passed.catch((error) => this.#letGo.abort(error)).then(this.#stopped.resolve);
    const reader = copy.getReader({ mode: "byob" });
    let timer: ReturnType<typeof setTimeout> | null = null;
    const cancel = () => void reader.cancel(this.#readingOver.reason).catch(() => {});
    const cancelSoon = () => {
      clearTimeout(timer);
      timer = setTimeout(cancel, thereMs);
    };
    const listening = new AbortController();
    listen(this.#readingOver, listening, cancelSoon);
    try {
      await this.#readCopy(reader, seen, cancelSoon);
    } finally {
      listening.abort();
      clearTimeout(timer);
      cancel();
    }
  }

  /** To its end. Once the client left, only what is there: it may have been given all of that. */
  async #readCopy(reader: ReadableStreamBYOBReader, seen: SeenStream, cancelSoon: () => void): Promise<void> {
    const ahead = new ReadAhead(this.done);
    const guarded = new SecretStream(this.#search);
    let buffer: ArrayBufferLike = new ArrayBuffer(copyBytes.most);
    for (let least = copyBytes.least; ; ) {
      if (!(await ahead.mayRead())) this.#letGo.abort(new Error("does not read"));
      const isOver = this.#readingOver.aborted;
      if (isOver) cancelSoon();
      const askedAt = Date.now();
      this.#unseenBytes = least;
      const { value: piece }: ReadResult = await reader.readAtLeast(least, new Uint8Array(buffer));
      if (!piece) return;
      const tookMs = Date.now() - askedAt;
      ahead.brought(piece.byteLength, tookMs);
      if (!guarded.take(piece)) throw this.#endAtKey();
      seen.take(piece);
      if (piece.byteLength < (isOver ? copyBytes.most : least)) return;
      least = tookMs < fastMs ? Math.min(2 * least, copyBytes.fast) : copyBytes.least;
      buffer = piece.buffer;
    }
  }

  #endAtKey(): Error {
    const reason = new Error("cut off in front of a key");
    logOwnKey();
    this.#found.abort(reason);
    return reason;
  }
}

type ReadResult = ReadableStreamReadResult<Uint8Array>;

/** Reads what is there, with room that grows with what comes. A piece is valid until the next one is read. */
class PieceReader {
  readonly #reader: ReadableStreamBYOBReader;
  #buffer: ArrayBufferLike = new ArrayBuffer(pieceBytes.least);
  #small = 0;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader({ mode: "byob" });
  }

  /** Those that came last, one after the other. */
  get areSmall(): boolean {
    return this.#small >= smallPieces;
  }

  async next(): Promise<{ piece: Uint8Array; isLast: boolean }> {
    const { value, done }: ReadResult = await this.#reader.read(new Uint8Array(this.#buffer));
    const piece = value ?? new Uint8Array();
    const room = piece.buffer.byteLength;
    const isFull = piece.byteLength === room && room < pieceBytes.most;
    this.#buffer = isFull ? new ArrayBuffer(2 * room) : piece.buffer;
    this.#small = piece.byteLength < pieceBytes.least ? this.#small + 1 : 0;
    return { piece, isLast: done };
  }

  cancel(reason: unknown): void {
    this.#reader.cancel(reason).catch(() => {});
  }

  releaseLock(): void {
    this.#reader.releaseLock();
  }
}

function listen(to: AbortSignal, until: AbortController, heard: (reason: unknown) => void): void {
  if (to.aborted) heard(to.reason);
  else to.addEventListener("abort", () => heard(to.reason), { once: true, signal: until.signal });
}
