// A client's body on its way in: read at a pace that is watched, and let go of where the request is refused.

import { isRecent } from "../isolate/recent.ts";
import type { ByteReader } from "../json/byte-reader.ts";
import { Pace } from "./pace.ts";

/** No client is waited for longer, or to send more. */
const bounds = { bytes: 32 * 1024 * 1024, ms: 10_000, idleMs: 1_000 };
const pieceBytes = 64 * 1024;

/** Requests that are no client's own: made here, of bytes whose pace is watched where they come in. */
const inside = new WeakSet<object>();
const begun = new WeakMap<object, ClientBody>();

export function asInside(request: Request): Request {
  inside.add(request);
  return request;
}

/** Undefined for what no client sends. */
export function paceOf(message: object): Pace | undefined {
  return message instanceof Request && !inside.has(message) ? new Pace() : undefined;
}

export function readerOf(message: object, body: ReadableStream<Uint8Array>): ByteReader {
  const reader = body.getReader({ mode: "byob" });
  const pace = paceOf(message);
  if (!pace) return reader;
  const client = new ClientBody(reader, pace);
  begun.set(message, client);
  return client;
}

/** A reader; one that cancels it leaves the rest to `letGo`. */
class ClientBody implements ByteReader {
  readonly #reader: ReadableStreamBYOBReader;
  readonly #pace: Pace;
  #reading: Promise<unknown> = Promise.resolve();

  constructor(reader: ReadableStreamBYOBReader, pace: Pace) {
    this.#reader = reader;
    this.#pace = pace;
  }

  get closed(): Promise<void> {
    return this.#reader.closed;
  }

  /** Waits for less where the client is slow: it must be seen to send. */
  readAtLeast<T extends ArrayBufferView>(count: number, view: T): Promise<ReadableStreamReadResult<T>> {
    const reading = this.#reader.readAtLeast(Math.min(count, this.#pace.least), view);
    this.#reading = reading.catch(() => {});
    return this.#pace.take(reading, ({ value }) => value?.byteLength ?? 0);
  }

  async cancel(): Promise<void> {}

  /**
   * Reads what a client still sends of an unread body, before the answer goes. Otherwise the runtime would close the
   * connection: a client that is still writing might never see its answer, and a kept connection would lose its next
   * call. Ends with the body, or if the client sends too much, for too long, or nothing any more.
   */
  async letGo(): Promise<void> {
    try {
      if (this.#pace.isOver || !(await this.#readRest())) await this.#reader.cancel("refused");
    } catch {
      // Its client has left.
    }
  }

  /** True where the body ended. */
  async #readRest(): Promise<boolean> {
    const begunAt = Date.now();
    await Promise.race([this.#reading, scheduler.wait(bounds.idleMs)]);
    let buffer: ArrayBufferLike = new ArrayBuffer(pieceBytes);
    for (let bytes = 0; bytes < bounds.bytes && !this.#pace.isOver && isRecent(begunAt, bounds.ms, Date.now()); ) {
      const next: Promise<ReadableStreamReadResult<Uint8Array>> = this.#reader.readAtLeast(1, new Uint8Array(buffer));
      const read = await Promise.race([next, scheduler.wait(bounds.idleMs)]);
      if (!read) return false;
      if (read.done || !read.value) return true;
      bytes += read.value.byteLength;
      buffer = read.value.buffer;
    }
    return false;
  }
}

/** Before the request is answered, or refused. Undefined where there is nothing to wait for. */
export function letGo(request: Request, isRefused: boolean): Promise<void> | undefined {
  if (request.bodyUsed) return isRefused ? begun.get(request)?.letGo() : undefined;
  if (request.body === null || request.body.locked) return undefined;
  return new ClientBody(request.body.getReader({ mode: "byob" }), new Pace()).letGo();
}
