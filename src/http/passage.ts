// A request passed on to another server as it is, and its answer back: bodies stream and are counted, and what could do harm
// on either side stays behind.
import { limits } from "../contract/limits.ts";
import { Problem } from "../errors.ts";
import { TooSlow } from "../json/body-fault.ts";
import { type ByteReader, statedLength } from "../json/byte-reader.ts";
import type { SecretSearch } from "../json/secret-search.ts";
import { SecretStream } from "../json/secret-stream.ts";
import { bodyProblem } from "./body-problem.ts";
import { readerOf } from "./client-body.ts";
import { answerHeaders, requestHeaders } from "./passage-headers.ts";
import { WatchedWriter } from "./watched-writer.ts";

export interface Passage {
  readonly request: Request;
  /** Where the request goes: `http://10.0.0.7:8000`, or an address with a path. The caller's path and query follow. */
  readonly base: string;
  /** What the caller calls that place: `/lb/my-endpoint`. */
  readonly mount: string;
  /** Headers of ours, such as our key. */
  readonly own: Readonly<Record<string, string>>;
  readonly send: (url: string, init: RequestInit) => Promise<Response>;
  /** From the moment the request leaves to the last byte of its answer. */
  readonly limitMs: number;
  /** What no answer may say. */
  readonly secrets?: SecretSearch | undefined;
}

export interface Passed {
  readonly response: Response;
  /** Settles when the answer has left, or broke off. An answer that states its length was made before it was begun. */
  readonly ended: Promise<void>;
}

/** The path and query behind a mount, as they were sent; undefined where the mount itself is spelled in another way. */
function restOf(url: string, mount: string): string | undefined {
  const at = url.indexOf("/", url.indexOf("//") + 2);
  if (!url.startsWith(mount, at)) return undefined;
  const rest = url.slice(at + mount.length);
  if (rest === "" || rest.startsWith("?")) return `/${rest}`;
  return rest.startsWith("/") ? rest : undefined;
}

/** A path without these stays below its base; to read any other is dearer. */
const mayLeaveBase = /\\|\s|\/(\.|%2e)/i;

/** A path that leads out of the base is no path of its. */
function targetOf({ request, base, mount }: Passage): string {
  const rest = restOf(request.url, mount);
  if (rest !== undefined && !mayLeaveBase.test(rest)) return base + rest;
  const target = rest === undefined ? "" : new URL(base + rest).href;
  if (!target.startsWith(`${new URL(base).href.replace(/\/$/, "")}/`)) {
    throw new Problem("NOT_FOUND", "There is no such path.");
  }
  return target;
}

export async function passOn(passage: Passage): Promise<Passed> {
  const { request, send, limitMs } = passage;
  const target = targetOf(passage);
  if (request.body && /^(GET|HEAD)$/.test(request.method)) {
    throw new Problem("INVALID_REQUEST", `a ${request.method} has no body`);
  }
  if (request.headers.has("Upgrade")) throw new Problem("INVALID_REQUEST", "Upgrade: WebSockets are not passed on");
  const stated = statedLength(request.headers);
  if (stated !== undefined && stated > limitBytes) throw bodyProblem("too-large", limitBytes);
  const cut = new AbortController();
  // On a small call `AbortSignal.any` would cost a tenth of all that is done.
  if (request.signal.aborted) cut.abort(brokenOff);
  else request.signal.addEventListener("abort", () => cut.abort(brokenOff), { once: true });
  // It is let go of with the exchange: an answer that is not read here ends unnoticed.
  const timer = setTimeout(() => cut.abort(tooSlow), limitMs);
  const isWatched = stated === undefined || stated > watchedBytes;
  const upload = request.body && isWatched ? counted(request, request.body, stated, cut) : undefined;
  const body = upload?.body ?? request.body;
  const init: RequestInit = {
    method: request.method,
    headers: requestHeaders(request.headers, passage),
    redirect: "manual",
    // One caller's answer is never another's, whatever its path looks like to a cache.
    cache: "no-store",
    signal: cut.signal,
    ...(body && { body }),
  };
  try {
    const answered = send(target, init);
    const response = await (upload ? Promise.race([answered, upload.fault]) : answered);
    return await answerOf(passage, target, response, timer);
  } catch (error) {
    clearTimeout(timer);
    const { reason } = cut.signal;
    cut.abort();
    // The client left in the middle of its own body: no worker was given all of it.
    if (request.signal.aborted && upload?.isWhole() === false) throw bodyProblem("source-gone", limitBytes);
    throw error instanceof Problem ? error : (reason ?? brokenOff);
  }
}

const tooSlow = new Problem("WORKER_TOO_SLOW", "The worker took too long.");
const brokenOff = new Problem("UPSTREAM_UNREACHABLE", "The worker could not be reached, or broke off.");
const saysKey = new Problem("UPSTREAM_BAD_ANSWER", "The worker's answer says our key.");

/**
 * A body that is watched as it passes. Where one that does not say how long it is ends too soon, the call is cut: the
 * runtime would end it as a whole one.
 */
function counted(request: Request, body: ReadableStream<Uint8Array>, stated: number | undefined, cut: AbortController) {
  const { readable, writable } = stated === undefined ? new IdentityTransformStream() : new FixedLengthStream(stated);
  const writer = writable.getWriter();
  const { promise: fault, reject } = Promise.withResolvers<never>();
  fault.catch(() => {});
  // A worker that answers before it has read all is let be.
  const stopped = new Error("does not read");
  const write = (bytes: Uint8Array) =>
    writer.write(bytes).catch(() => {
      throw stopped;
    });
  let isWhole = false;
  const close = () => {
    isWhole = true;
    return writer.close();
  };
  pump(readerOf(request, body), { write, close }).catch((error: unknown) => {
    if (error === stopped) return;
    const problem = error instanceof TooSlow ? bodyProblem("too-slow", limitBytes) : error;
    reject(problem instanceof Problem ? problem : brokenOff);
    cut.abort(problem);
    writer.abort(error).catch(() => {});
  });
  return { body: readable, fault, isWhole: () => isWhole };
}

async function answerOf(
  passage: Passage,
  target: string,
  response: Response,
  timer: ReturnType<typeof setTimeout>,
): Promise<Passed> {
  // Its reason phrase is not passed on: it is free text, and clients of HTTP/2 never see one.
  const { status, body } = response;
  const headers = answerHeaders(response.headers, { ...passage, target });
  const refusal = refusalOf(passage, response, headers);
  if (refusal) {
    body?.cancel().catch(() => {});
    throw refusal;
  }
  const { request, secrets } = passage;
  const whole = (content: BodyInit | null): Passed => {
    return { response: new Response(content, { status, headers }), ended: Promise.resolve() };
  };
  const stated = statedLength(response.headers);
  if (!body || request.method === "HEAD" || (stated !== undefined && !secrets)) return whole(body);
  // What is packed is longer than it says.
  if (stated !== undefined && stated <= smallBytes && !headers.has("Content-Encoding")) {
    const bytes = await response.bytes();
    clearTimeout(timer);
    if (bytes.byteLength !== stated) throw brokenOff;
    if (secrets?.finds(bytes)) throw saysKey;
    return whole(bytes);
  }
  headers.delete("Content-Length");
  const { readable, writable } = new IdentityTransformStream();
  const writer = new WatchedWriter(writable);
  const reader = body.getReader({ mode: "byob" });
  writer.gone.addEventListener("abort", () => void reader.cancel("nobody reads").catch(() => {}));
  const ended = pump(reader, writer, secrets).catch((error: unknown) => {
    // The answer ends short, which is all that can be told by then.
    reader.cancel(error).catch(() => {});
    writer.letGo(error);
  });
  const passed = new Response(readable, { status, headers });
  return { response: passed, ended: ended.finally(() => clearTimeout(timer)) };
}

/** The runtime reads these, so written; in any other encoding our key would pass unseen. Clients read `GZIP` too. */
export const readableEncoding = /^(|identity|gzip|br)$/;

function refusalOf({ request, secrets }: Passage, response: Response, headers: Headers): Problem | undefined {
  const { status } = response;
  if (status < 200 || status > 599) return new Problem("UPSTREAM_BAD_ANSWER", "The worker's answer is none.");
  if (secrets?.findsInHeaders(headers)) return saysKey;
  if (secrets && !readableEncoding.test(headers.get("Content-Encoding") ?? ""))
    return new Problem("UPSTREAM_BAD_ANSWER", "The worker's answer is in an encoding that was not asked for.");
  const isLarge = (statedLength(response.headers) ?? 0) > limitBytes && request.method !== "HEAD";
  return isLarge
    ? new Problem("UPSTREAM_TOO_LARGE", `The worker's answer is larger than ${limitBytes} bytes.`)
    : undefined;
}

/** Each way. */
const limitBytes = limits.balanced.bytes;
/** An answer of that size that is to be searched is read whole: it costs a fraction, and may still be refused. */
const smallBytes = 16 * 1024;
const pieceBytes = 64 * 1024;
/** A longer body may break off on its way. */
const watchedBytes = 256 * 1024;

type Sink = Pick<WatchedWriter, "write" | "close">;

/** Each piece goes on as it comes. */
async function pump(from: ByteReader, to: Sink, secrets?: SecretSearch): Promise<void> {
  const search = secrets && new SecretStream(secrets);
  let buffer: ArrayBufferLike = new ArrayBuffer(pieceBytes);
  for (let bytes = 0; ; ) {
    const { value, done }: ReadableStreamReadResult<Uint8Array> = await from.readAtLeast(1, new Uint8Array(buffer));
    if (done || !value) break;
    bytes += value.byteLength;
    if (bytes > limitBytes) throw bodyProblem("too-large", limitBytes);
    const clear = search ? search.take(value) : value;
    if (!clear) throw new Error("says our key");
    if (clear.byteLength > 0) await to.write(clear);
    buffer = value.buffer;
  }
  if (search && search.held.byteLength > 0) await to.write(search.held);
  await to.close();
}
