// Reads a body that is small enough to hold, and hands over one that turns out not to be.
import { type BodyFault, faultOf } from "../json/body-fault.ts";
import { type ByteReader, type ByteSource, statedLength } from "../json/byte-reader.ts";
import { concat } from "../json/concat.ts";
import { SKIM } from "../json/json-listener.ts";
import { MAX_DEPTH } from "../json/json-place.ts";
import { type JsonFault, JsonScanner } from "../json/json-scanner.ts";
import { utf8 } from "../json/utf8-text.ts";
import { paceOf, readerOf } from "./client-body.ts";

export type Head =
  | { ended: true; bytes: Uint8Array }
  | { ended: false; head: Uint8Array; reader: ByteReader }
  | { fault: BodyFault };
export type Whole = { bytes: Uint8Array } | { fault: BodyFault };

/** What is held grows with what has come, in pieces: a stated length is no reason to make room for it. */
const PIECE_BYTES = { least: 16 * 1024, most: 1024 * 1024 };

/** A body up to this size is read at once by the runtime, at half the price of a reader. */
const SMALL_BYTES = 16 * 1024;

/** The length that HTTP holds a body to. Undefined where none is stated, and where it grows when it is decoded. */
export function heldLength({ headers }: Pick<Body, "headers">): number | undefined {
  return headers.has("Content-Encoding") ? undefined : statedLength(headers);
}

export function isSmall(message: Body): boolean {
  const length = heldLength(message);
  return length !== undefined && length <= SMALL_BYTES;
}

export async function readSmall(message: Body): Promise<Head> {
  try {
    const whole = message.arrayBuffer();
    const pace = paceOf(message);
    return { ended: true, bytes: new Uint8Array(await (pace ? pace.take(whole, bytesOf) : whole)) };
  } catch (error) {
    return { fault: faultOf(error) };
  }
}

type Body = Pick<Request | Response, "headers" | "arrayBuffer" | "body">;
const bytesOf = ({ byteLength }: ArrayBuffer) => byteLength;

/** Reads until the body ends or has passed `wholeBytes`; then the caller goes on with the reader, or cancels it. */
export async function readHead(message: Pick<Body, "body">, wholeBytes: number, giveUp?: AbortSignal): Promise<Head> {
  if (message.body === null) return { ended: true, bytes: new Uint8Array(0) };
  const reader = readerOf(message, message.body);
  giveUp?.addEventListener("abort", () => void reader.cancel("given up").catch(() => {}), { once: true });
  return readOn({ head: new Uint8Array(), reader }, wholeBytes, giveUp);
}

/** The same, of what was begun. */
export async function readOn({ head, reader }: ByteSource, wholeBytes: number, giveUp?: AbortSignal): Promise<Head> {
  const pieces: Uint8Array[] = head.byteLength > 0 ? [head] : [];
  let filled = head.byteLength;
  try {
    for (let ended = false; !ended && filled <= wholeBytes; ) {
      const piece = await readPiece(reader, Math.min(pieceBytes(filled), wholeBytes + 1 - filled));
      if (giveUp?.aborted) return { fault: "source-gone" };
      pieces.push(piece.bytes);
      filled += piece.bytes.byteLength;
      ended = piece.ended;
    }
  } catch (error) {
    return { fault: faultOf(error) };
  }
  const whole = joined(pieces, filled);
  return filled > wholeBytes ? { ended: false, head: whole, reader } : { ended: true, bytes: whole };
}

function pieceBytes(filled: number): number {
  return Math.max(PIECE_BYTES.least, Math.min(filled >> 1, PIECE_BYTES.most));
}

/** Full, or the body's last. */
async function readPiece(reader: ByteReader, size: number): Promise<{ bytes: Uint8Array; ended: boolean }> {
  let bytes = new Uint8Array(size);
  for (let filled = 0; ; ) {
    const { value, done } = await reader.readAtLeast(size - filled, bytes.subarray(filled));
    if (value) bytes = new Uint8Array(value.buffer);
    filled += value?.byteLength ?? 0;
    if (done || !value) return { bytes: bytes.subarray(0, filled), ended: true };
    if (filled === size) return { bytes, ended: false };
  }
}

function joined(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = pieces;
  if (first?.byteLength === size) return first;
  return concat(pieces, size);
}

/** The whole body, refused at once by its stated length, or as it flows past the limit. */
export async function readWhole(message: Pick<Body, "headers" | "body">, limitBytes: number): Promise<Whole> {
  if ((statedLength(message.headers) ?? 0) > limitBytes) return { fault: "too-large" };
  const head = await readHead(message, limitBytes);
  if ("fault" in head) return head;
  if (head.ended) return { bytes: head.bytes };
  head.reader.cancel("too large").catch(() => {});
  return { fault: "too-large" };
}

/** Parses what the scanner accepts too, so that a body gets the same verdict whichever way it goes. */
export function parseJson(bytes: Uint8Array): ParsedJson | { fault: JsonFault } {
  const fault = bytes.length > shallowBytes ? scanFault(bytes) : undefined;
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
export const shallowBytes = 2 * MAX_DEPTH;
const decoder = utf8();

function scanFault(bytes: Uint8Array): JsonFault | undefined {
  const scanner = new JsonScanner(deaf);
  const whole = scanner.scan(bytes, 0, bytes.length) === bytes.length && scanner.finish(bytes, bytes.length);
  return whole ? undefined : (scanner.fault ?? "not-json");
}

const deaf = { key: () => {}, value: () => SKIM, end: () => {} };
