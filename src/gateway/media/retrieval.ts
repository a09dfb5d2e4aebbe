// `GET, HEAD /images/:key`: from the Cache API, else from where the media lies, checked and streamed.
import type { Config } from "../../config.ts";
import { Problem } from "../../errors.ts";
import { readBounded } from "../../http/small-body.ts";
import { type ByteRange, readContentRange, resolveRange, writeRange } from "./byte-range.ts";
import { FileCache } from "./file-cache.ts";
import { conditionalRange, etagOf, isKnown } from "./file-tag.ts";
import type { Media } from "./media.ts";
import { rejoin } from "./media-body.ts";
import type { MediaKey } from "./media-key.ts";
import { cacheForBrowsers, publicHeaders } from "./public-file.ts";
import type { FileKind } from "./sniff.ts";
import { fetchMedia, maxMediaBytes, type Opened, openMedia, type Sources, sniffMedia } from "./source.ts";

/** Up to this much of a file is held in memory: if its size is unknown, or if a range is cut out of it here. */
const heldBytes = 2 * 1024 * 1024;

/** What an answer repeats of a cached one. */
const repeatedHeaders = ["Content-Type", "Content-Disposition", "Content-Length", "Content-Range"] as const;

export interface Retrieval {
  readonly key: MediaKey;
  readonly media: Media;
  readonly sources: Sources;
  readonly request: Request;
  /** What the cache knows the file by. */
  readonly cacheUrl: string;
  readonly config: Pick<Config, "allowedOrigins">;
  readonly now: number;
  /** A cache in front of the Worker keeps whole files and cuts ranges out of them: it is given nothing else. */
  readonly isCachedInFront: boolean;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

export async function retrieve(retrieval: Retrieval): Promise<Response> {
  const { request, key } = retrieval;
  const etag = etagOf(key);
  if (isKnown(request.headers, etag)) return answer(retrieval, null, 304, {});
  if (retrieval.isCachedInFront) return finish(retrieval, await whole(retrieval));
  const range = request.method === "GET" ? conditionalRange(request.headers, etag) : undefined;
  const cached = await fromCache(retrieval, range);
  if (cached) return finish(retrieval, cached);
  const fetched = range && (await partial(retrieval, range));
  return finish(retrieval, fetched ?? (await whole(retrieval)));
}

/** A HEAD is a GET whose body is not read. */
async function finish({ request }: Retrieval, response: Response): Promise<Response> {
  if (request.method !== "HEAD") return response;
  await response.body?.cancel().catch(() => {});
  return new Response(null, response);
}

async function fromCache(retrieval: Retrieval, range: ByteRange | undefined): Promise<Response | undefined> {
  const cached = await cacheOf(retrieval).match(range);
  if (!cached) return undefined;
  const headers: Record<string, string> = { "X-Cache": "HIT" };
  for (const name of repeatedHeaders) {
    const value = cached.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  return answer(retrieval, cached.body, cached.status, headers);
}

function cacheOf({ cacheUrl, waitUntil }: Retrieval): FileCache {
  return new FileCache(cacheUrl, waitUntil);
}

async function whole(retrieval: Retrieval): Promise<Response> {
  const { media, sources, request, waitUntil } = retrieval;
  const opened = await openMedia(sources, media.url);
  const { kind, size } = opened;
  const length: Record<string, string> = size === undefined ? {} : { "Content-Length": String(size) };
  const headers = { ...fileHeaders(retrieval, kind), ...length, "X-Cache": "MISS" };
  if (request.method === "HEAD") {
    await opened.rest.cancel().catch(() => {});
    return answer(retrieval, null, 200, headers);
  }
  const { stream, work } = rejoin(opened);
  waitUntil(work);
  if (retrieval.isCachedInFront) return answer(retrieval, stream, 200, headers);
  if (size === undefined) {
    waitUntil(fill(retrieval));
    return answer(retrieval, stream, 200, headers);
  }
  // The runtime reads for both at the pace of the slower one, and holds next to nothing.
  const [client, kept] = stream.tee();
  waitUntil(cacheOf(retrieval).putStream(kept, work, size, keptHeaders(retrieval, kind)));
  return answer(retrieval, client, 200, headers);
}

/** Undefined where the source does not serve ranges and the file is too large to be cut here. */
async function partial(retrieval: Retrieval, range: ByteRange): Promise<Response | undefined> {
  const { media, sources, waitUntil } = retrieval;
  const kind = await sniffMedia(sources, media.url);
  const response = await fetchMedia(sources, media.url, writeRange(range));
  if (response.status === 206) {
    const answered = await relayPart(retrieval, response, range, kind);
    if ("from" in range && range.from === 0) waitUntil(fill(retrieval));
    return answered;
  }
  await response.body?.cancel().catch(() => {});
  if (response.status === 416) throw notSatisfiable(response.headers.get("Content-Range"));
  return response.status === 200 ? cut(retrieval, range) : undefined;
}

async function relayPart(
  retrieval: Retrieval,
  response: Response,
  range: ByteRange,
  kind: FileKind,
): Promise<Response> {
  const content = readContentRange(response.headers.get("Content-Range"));
  const asked = content && resolveRange(range, content.size);
  const honest = content && asked?.from === content.from && content.to <= asked.to && content.size <= maxMediaBytes;
  if (!honest || !response.body) {
    await response.body?.cancel().catch(() => {});
    throw new Problem("MEDIA_UNAVAILABLE", "The media's own server answered another part than the one asked for.");
  }
  const { from, to, size } = content;
  const rest = response.body.getReader({ mode: "byob" });
  const { stream, work } = rejoin({ head: new Uint8Array(), rest, size: to - from + 1 });
  retrieval.waitUntil(work);
  return part(retrieval, stream, { from, to, size }, kind);
}

function part(
  retrieval: Retrieval,
  body: BodyInit,
  { from, to, size }: { from: number; to: number; size: number },
  kind: FileKind,
): Response {
  return answer(retrieval, body, 206, {
    ...fileHeaders(retrieval, kind),
    "Content-Range": `bytes ${from}-${to}/${size}`,
    "Content-Length": String(to - from + 1),
    "X-Cache": "MISS",
  });
}

async function cut(retrieval: Retrieval, range: ByteRange): Promise<Response | undefined> {
  const opened = await openMedia(retrieval.sources, retrieval.media.url);
  const { size, kind } = opened;
  if (size === undefined || size > heldBytes) {
    await opened.rest.cancel().catch(() => {});
    return undefined;
  }
  const { stream, work } = rejoin(opened);
  retrieval.waitUntil(work);
  const bytes = await readBounded(stream, heldBytes).catch(() => undefined);
  if (!bytes) throw new Problem("MEDIA_UNAVAILABLE", "The media ended in the middle.");
  retrieval.waitUntil(cacheOf(retrieval).put(bytes, size, keptHeaders(retrieval, kind)));
  const asked = resolveRange(range, size);
  if (!asked) throw notSatisfiable(`bytes */${size}`);
  return part(retrieval, bytes.slice(asked.from, asked.to + 1), { ...asked, size }, kind);
}

/** Fetched once more, for the cache alone. */
async function fill(retrieval: Retrieval): Promise<void> {
  try {
    const opened = await openMedia(retrieval.sources, retrieval.media.url);
    const { stream, work } = rejoin(opened);
    await Promise.all([work, keep(retrieval, opened, stream, work)]);
  } catch {
    console.warn(JSON.stringify({ cache: "not filled", key: retrieval.key.tag }));
  }
}

/** One that does not say its size is kept only where it is small: a stream that broke must not pass for a file. */
async function keep(
  retrieval: Retrieval,
  { size, kind }: Opened,
  stream: ReadableStream<Uint8Array>,
  isWhole: Promise<boolean>,
): Promise<void> {
  const headers = keptHeaders(retrieval, kind);
  if (size !== undefined) return cacheOf(retrieval).putStream(stream, isWhole, size, headers);
  const bytes = await readBounded(stream, heldBytes);
  if (bytes) await cacheOf(retrieval).put(bytes, bytes.byteLength, headers);
}

function keptHeaders(retrieval: Retrieval, kind: FileKind): Record<string, string> {
  return { ...fileHeaders(retrieval, kind), "Cache-Control": cacheForBrowsers(fileOf(retrieval)) };
}

/** The name is ours, so that nothing of the source's reaches a disk's name. */
function fileHeaders({ key }: Retrieval, { type, extension }: FileKind): Record<string, string> {
  const name = `${key.field.replace("_url", "")}-${key.tag.slice(0, 12)}.${extension}`;
  return { "Content-Type": type, "Content-Disposition": `inline; filename="${name}"` };
}

function fileOf({ key, media, config, now }: Retrieval) {
  return { tag: key.text, expiresAt: media.expiresAt, config, now };
}

function answer(retrieval: Retrieval, body: BodyInit | null, status: number, more: Record<string, string>): Response {
  const headers = { ...more, ...publicHeaders(fileOf(retrieval)), ETag: etagOf(retrieval.key) };
  return new Response(body, { status, headers });
}

function notSatisfiable(contentRange: string | null): Problem {
  const [size] = /^bytes \*\/\d{1,15}$/.exec(contentRange ?? "") ?? [];
  return new Problem("RANGE_NOT_SATISFIABLE", "The file has no such bytes.", size ? { "Content-Range": size } : {});
}
