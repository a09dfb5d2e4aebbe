// Streams events to a client, reads their cost on the way, and cuts the stream off if it says our key.
//
// It begins in a careful mode: each piece is searched before it leaves. This also bounds how much waits for a slow client.
// A fast stream stays in it, in pieces of 4 KB: they cost less than its events would one by one. Of one that is neither
// fast nor comes in large pieces the runtime pipes the rest itself, and we read a copy (`tee`). Then a key is found late:
// it may have left already, and some of what follows it.

import { WatchedWriter } from "../../http/watched-writer.ts";
import type { SecretSearch } from "../../json/secret-search.ts";
import { SecretStream } from "../../json/secret-stream.ts";
import { logOwnKey } from "../upstream/own-keys.ts";
import { PieceReader } from "./piece-reader.ts";
import { ReadAhead } from "./read-ahead.ts";
import type { StreamUsage } from "./stream-usage.ts";

/** A read that takes as long has to wait for its bytes. */
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
  /** If the stream is cut, at most so much passed to the client without being counted. */
  #unseenBytes = 0;
  /** Nothing more goes to the client. */
  readonly #passingOver: AbortSignal;
  /** Nothing more is read: our key was found, or the client left and cannot come back for the rest. */
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

  /** Reads to the end of the stream, or to where it is cut. */
  async read(seen: StreamUsage): Promise<void> {
    try {
      if (await this.#passPieces(seen)) await this.#passOn(seen);
      this.#readingOver.throwIfAborted();
      seen.end();
    } catch {
      seen.cut(this.#unseenBytes);
      this.#stopped.resolve();
    }
  }

  /** Called when the upstream has sent everything: the client has this long to read what is left. */
  async doneWithin(ms: number): Promise<void> {
    const timer = setTimeout(() => this.#letGo.abort(new Error("does not read")), ms);
    await this.done;
    clearTimeout(timer);
  }

  /**
   * Searches each piece and writes it to the client. True if the runtime is to pipe the rest, which comes slowly and in
   * small pieces.
   */
  async #passPieces(seen: StreamUsage): Promise<boolean> {
    const pieces = new PieceReader(this.#events);
    const client = new WatchedWriter(this.#writable);
    const listening = new AbortController();
    listen(this.#readingOver, listening, (reason) => pieces.cancel(reason));
    listen(this.#passingOver, listening, (reason) => client.letGo(reason));
    listen(client.gone, listening, (reason) => this.#letGo.abort(reason));
    const guarded = new SecretStream(this.#search);
    try {
      for (;;) {
        const { piece, isLast } = await pieces.next();
        this.#readingOver.throwIfAborted();
        const clear = guarded.take(piece);
        if (!clear) throw this.#endAtKey();
        seen.take(piece);
        await this.#write(client, clear);
        if (isLast) break;
        if (pieces.areSmallAndSlow && guarded.held.length === 0 && !this.#passingOver.aborted) {
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

  /** Nothing is written to a client that has left. If it may come back for the answer, reading goes on. */
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
  async #passOn(seen: StreamUsage): Promise<void> {
    // Of pieces that wait, the second branch holds no more than they have, the first the room that was made for each. So
    // the second is the copy, where all waits that comes in a pause; what waits for the client is limited by `ReadAhead`.
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

  /**
   * Reads the copy to its end. After the client left, only what has already come: the client may have been given all of
   * that.
   */
  async #readCopy(reader: ReadableStreamBYOBReader, seen: StreamUsage, cancelSoon: () => void): Promise<void> {
    const ahead = new ReadAhead(this.done);
    const guarded = new SecretStream(this.#search);
    let buffer: ArrayBufferLike = new ArrayBuffer(0);
    for (;;) {
      if (!(await ahead.mayRead())) this.#letGo.abort(new Error("does not read"));
      const isOver = this.#readingOver.aborted;
      if (isOver) cancelSoon();
      const { roomBytes, leastBytes } = ahead;
      if (buffer.byteLength !== roomBytes) buffer = new ArrayBuffer(roomBytes);
      const askedAt = Date.now();
      this.#unseenBytes = isOver ? 0 : leastBytes - 1;
      const { value: piece }: ReadableStreamReadResult<Uint8Array> = await reader.readAtLeast(
        isOver ? 1 : leastBytes,
        new Uint8Array(buffer),
      );
      if (!piece?.byteLength) return;
      ahead.brought(piece.byteLength, Date.now() - askedAt);
      if (!guarded.take(piece)) {
        this.#unseenBytes = piece.byteLength;
        throw this.#endAtKey();
      }
      seen.take(piece);
      if (isOver && piece.byteLength < piece.buffer.byteLength) return;
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

function listen(to: AbortSignal, until: AbortController, heard: (reason: unknown) => void): void {
  if (to.aborted) heard(to.reason);
  else to.addEventListener("abort", () => heard(to.reason), { once: true, signal: until.signal });
}
