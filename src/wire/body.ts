// Reads a body that is small enough to hold, and hands over one that turns out not to be.
import { SKIM } from "./json-listener.ts";
import { MAX_DEPTH } from "./json-place.ts";
import { type JsonFault, JsonScanner } from "./json-scanner.ts";
import { utf8 } from "./utf8-text.ts";

/** A body that was begun: the bytes read so far, in a buffer that whoever reads on may take, and the reader of the rest. */
export interface ByteSource {
  readonly head: Uint8Array;
  readonly reader: ByteReader;
}

/** As much of a reader as whoever goes on with a body asks of it. */
export type ByteReader = Pick<ReadableStreamBYOBReader, "closed" | "cancel" | "readAtLeast">;

export type BodyFault = "too-large" | "source-gone";
export type Head =
  | { ended: true; bytes: Uint8Array }
  | { ended: false; head: Uint8Array; reader: ReadableStreamBYOBReader }
  | { fault: BodyFault };
export type Whole = { bytes: Uint8Array } | { fault: BodyFault };
export type ParsedBody = { value: unknown; bytes: Uint8Array } | { fault: BodyFault | JsonFault };

/** Where a body of unknown length begins to grow from. */
const FIRST_BYTES = 16 * 1024;

/** The length that a Content-Length header states; undefined for a chunked body, whatever else its head states. */
export function statedLength(headers: Headers): number | undefined {
  if (headers.has("Transfer-Encoding")) return undefined;
  const stated = headers.get("content-length");
  return stated !== null && /^\d{1,15}$/.test(stated) ? Number(stated) : undefined;
}

/** So much is read at once, by the runtime: it costs half of what a reader does. */
const SMALL_BYTES = 16 * 1024;

/** HTTP holds a body to its stated length, unless the body grows when it is decoded. */
export function isSmall({ headers }: Body): boolean {
  const length = statedLength(headers);
  return length !== undefined && length <= SMALL_BYTES && !headers.has("Content-Encoding");
}

export async function readSmall(message: Body): Promise<Head> {
  try {
    return { ended: true, bytes: new Uint8Array(await message.arrayBuffer()) };
  } catch {
    return { fault: "source-gone" };
  }
}

type Body = Pick<Request | Response, "headers" | "arrayBuffer">;

/** Reads until the body ends or has passed `wholeBytes`; then the caller goes on with the reader, or cancels it. */
export async function readHead(
  body: ReadableStream<Uint8Array> | null,
  wholeBytes: number,
  length?: number,
  giveUp?: AbortSignal,
): Promise<Head> {
  if (body === null) return { ended: true, bytes: new Uint8Array(0) };
  const reader = body.getReader({ mode: "byob" });
  giveUp?.addEventListener("abort", () => void reader.cancel("given up").catch(() => {}), { once: true });
  let buffer = new Uint8Array(Math.min(length ?? FIRST_BYTES, wholeBytes) + 1);
  let filled = 0;
  try {
    for (;;) {
      const asked = buffer.length - filled;
      const { value, done } = await reader.readAtLeast(asked, buffer.subarray(filled));
      if (value !== undefined) {
        filled += value.byteLength;
        buffer = new Uint8Array(value.buffer);
      }
      if (giveUp?.aborted) return { fault: "source-gone" };
      // Less than was asked for is all that was left.
      if (done || value === undefined || value.byteLength < asked)
        return { ended: true, bytes: buffer.subarray(0, filled) };
      if (filled > wholeBytes) return { ended: false, head: buffer.subarray(0, filled), reader };
      if (filled === buffer.length) {
        const larger = new Uint8Array(Math.min(buffer.length * 2, wholeBytes + 1));
        larger.set(buffer);
        buffer = larger;
      }
    }
  } catch {
    return { fault: "source-gone" };
  }
}

/** The whole body, refused at once by its stated length, or as it flows past the limit. */
export async function readWhole(
  body: ReadableStream<Uint8Array> | null,
  limitBytes: number,
  length?: number,
): Promise<Whole> {
  if (length !== undefined && length > limitBytes) {
    return { fault: "too-large" };
  }
  const head = await readHead(body, limitBytes, length);
  if ("fault" in head) return head;
  if (head.ended) return { bytes: head.bytes };
  head.reader.cancel("too large").catch(() => {});
  return { fault: "too-large" };
}

/** Parses what the scanner accepts too, so that a body gets the same verdict whichever way it goes. */
export function parseJson(bytes: Uint8Array): ParsedJson | { fault: JsonFault } {
  const fault = bytes.length > SHALLOW_BYTES ? scanFault(bytes) : undefined;
  if (fault) return { fault };
  try {
    return { value: JSON.parse(decoder.decode(bytes)) };
  } catch {
    return { fault: "not-json" };
  }
}

export interface ParsedJson {
  readonly value: unknown;
}

/** Of so many bytes no JSON is too deep, and of the rest `JSON.parse` is the judge: each level opens and closes. */
const SHALLOW_BYTES = 2 * MAX_DEPTH;
const decoder = utf8();

function scanFault(bytes: Uint8Array): JsonFault | undefined {
  const scanner = new JsonScanner(deaf);
  const whole = scanner.scan(bytes, 0, bytes.length) === bytes.length && scanner.finish(bytes, bytes.length);
  return whole ? undefined : (scanner.fault ?? "not-json");
}

/** The whole body as JSON. */
export async function readJson(
  body: ReadableStream<Uint8Array> | null,
  limitBytes: number,
  length?: number,
): Promise<ParsedBody> {
  const whole = await readWhole(body, limitBytes, length);
  if ("fault" in whole) return whole;
  const parsed = parseJson(whole.bytes);
  return "fault" in parsed ? parsed : { ...parsed, bytes: whole.bytes };
}

const deaf = { key: () => {}, value: () => SKIM, end: () => {} };
