// What a client still sends of a body that was refused. A server that hangs up on bytes that nobody read resets the
// connection, and the client, which is still writing, may never see the refusal: so they are read before it is answered.
import { type ByteReader, statedLength } from "./body.ts";

/** So much the runtime reads by itself before it hangs up. */
const runtimesBytes = 64 * 1024;
/** No client is waited for longer, or to send more. */
const bounds = { bytes: 32 * 1024 * 1024, ms: 10_000, idleMs: 1_000 };
const pieceBytes = 64 * 1024;

const begun = new WeakMap<Request, RestOfBody>();

/** A request's reader, as those who look at the body have it: one that cancels leaves the rest to `letGo`. */
export class RestOfBody implements ByteReader {
  readonly #reader: ReadableStreamBYOBReader;
  #reading: Promise<unknown> = Promise.resolve();

  constructor(reader: ReadableStreamBYOBReader) {
    this.#reader = reader;
  }

  get closed(): Promise<void> {
    return this.#reader.closed;
  }

  readAtLeast<T extends ArrayBufferView>(count: number, view: T): Promise<ReadableStreamReadResult<T>> {
    const reading = this.#reader.readAtLeast(count, view);
    this.#reading = reading.catch(() => {});
    return reading;
  }

  async cancel(): Promise<void> {}

  /** Ends with the body, or where its client sends too much, too long or nothing any more. */
  async letGo(): Promise<void> {
    const until = Date.now() + bounds.ms;
    let buffer: ArrayBufferLike = new ArrayBuffer(pieceBytes);
    try {
      await Promise.race([this.#reading, scheduler.wait(bounds.idleMs)]);
      for (let bytes = 0; bytes < bounds.bytes && Date.now() < until; ) {
        const next: Promise<ReadableStreamReadResult<Uint8Array>> = this.#reader.readAtLeast(1, new Uint8Array(buffer));
        const read = await Promise.race([next, scheduler.wait(bounds.idleMs)]);
        if (!read) break;
        if (read.done || !read.value) return;
        bytes += read.value.byteLength;
        buffer = read.value.buffer;
      }
      await this.#reader.cancel("refused");
    } catch {
      // Its client has left.
    }
  }
}

/** Of a body that streams, so that a refusal finds what is left of it. */
export function restOf(request: Request, reader: ReadableStreamBYOBReader): ByteReader {
  const rest = new RestOfBody(reader);
  begun.set(request, rest);
  return rest;
}

/** Before the request's refusal is answered. Undefined where there is nothing to wait for. */
export function letGo(request: Request): Promise<void> | undefined {
  const length = statedLength(request.headers);
  if (request.body === null || (length !== undefined && length <= runtimesBytes)) return undefined;
  if (request.bodyUsed) return begun.get(request)?.letGo();
  if (request.body.locked) return undefined;
  return new RestOfBody(request.body.getReader({ mode: "byob" })).letGo();
}
