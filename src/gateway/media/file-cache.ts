// A link's file in the Cache API: all of it, or none. The cache is comfort: whatever goes wrong here, the next request tries again.
import { type ByteRange, readContentRange, writeRange } from "./byte-range.ts";

/** Said in an entry: some caches take a stream that broke off for a whole file, Miniflare's among them. */
const sizeHeader = "X-File-Size";
/** A file of at most so much is looked at as a whole: that costs less than to watch it pass. */
const smallBytes = 128 * 1024;
/** An entry may be there only a while after the cache has answered. */
const storesWithinMs = 1_000;

export interface CachedFile {
  readonly status: number;
  readonly headers: Headers;
  readonly body: BodyInit;
}

export class FileCache {
  readonly #url: string;
  readonly #waitUntil: (work: Promise<unknown>) => void;

  constructor(url: string, waitUntil: (work: Promise<unknown>) => void) {
    this.#url = url;
    this.#waitUntil = waitUntil;
  }

  /**
   * Undefined if the cache has no whole file. Of a large one, that is seen too late: its stream breaks off, so that it
   * cannot pass for a whole one.
   */
  async match(range: ByteRange | undefined): Promise<CachedFile | undefined> {
    const request = new Request(this.#url, range ? { headers: { Range: writeRange(range) } } : {});
    const cached = await caches.default.match(request).catch(() => undefined);
    if (!cached?.body) return undefined;
    const { status, headers, body } = cached;
    const size = Number(headers.get(sizeHeader));
    if (status === 200 && size > 0 && size <= smallBytes) {
      const bytes = await cached.arrayBuffer().catch(() => undefined);
      if (bytes?.byteLength === size) return { status, headers, body: bytes };
    } else if (status === 200 && size > 0) {
      const { readable, writable } = new FixedLengthStream(size);
      body.pipeTo(writable).catch(() => {});
      return { status, headers, body: readable };
    }
    if (status === 206 && readContentRange(headers.get("Content-Range"))?.size === size) return cached as CachedFile;
    body.cancel().catch(() => {});
    // Beyond what is kept there may be more of the file: its source knows.
    if (status !== 416) this.#waitUntil(this.#delete());
    return undefined;
  }

  async put(body: BodyInit, size: number, headers: Record<string, string>): Promise<void> {
    const response = new Response(body, { headers: { ...headers, [sizeHeader]: String(size) } });
    await caches.default.put(this.#url, response).catch(() => {});
    // If the cache did not read the stream, cancel it: otherwise it would be held in memory, or never end.
    if (body instanceof ReadableStream) await body.cancel().catch(() => {});
  }

  /** `isWhole` resolves once all of the stream has come, or no more does. */
  async putStream(
    stream: ReadableStream<Uint8Array>,
    isWhole: Promise<boolean>,
    size: number,
    headers: Record<string, string>,
  ): Promise<void> {
    await this.put(stream, size, headers);
    if (await isWhole) return;
    await scheduler.wait(storesWithinMs);
    await this.#delete();
  }

  async #delete(): Promise<void> {
    await caches.default.delete(this.#url).catch(() => false);
  }
}
