// What the queue says, as responses: refusals become problems, a job's output is spliced in as the bytes that it is.

import { Problem } from "../errors.ts";
import { concat } from "../json/concat.ts";
import type { Body, JobView, Refusal } from "./queue/views.ts";

const encoder = new TextEncoder();
const json = { "Content-Type": "application/json" };

export function orThrow<T extends object>(result: T | Refusal): T {
  if (!("refused" in result)) return result;
  const { refused, detail, retryAfterSeconds } = result;
  const headers = retryAfterSeconds === undefined ? {} : { "Retry-After": String(retryAfterSeconds) };
  throw new Problem(refused, detail, headers);
}

export function answerJob(view: JobView | Refusal): Response {
  const { head, output } = orThrow(view);
  if (output === null) return Response.json(head);
  return new Response(splice([`${JSON.stringify(head).slice(0, -1)},"output":`, output, "}"]), { headers: json });
}

export type Piece = string | Body;

/** The pieces as one body; a stream among them is not read here. */
export function splice(pieces: readonly Piece[]): BodyInit {
  return pieces.some(flows) ? spliceFlowing(pieces) : concat(pieces.filter(isWhole).map(bytesOf));
}

export function flows(piece: Piece): piece is ReadableStream<Uint8Array> {
  return piece instanceof ReadableStream;
}

function isWhole(piece: Piece): piece is string | Uint8Array {
  return !flows(piece);
}

function bytesOf(piece: string | Uint8Array): Uint8Array {
  return typeof piece === "string" ? encoder.encode(piece) : piece;
}

export interface Flow {
  /** Called before anything is sent; what it throws breaks the flow. */
  readonly ready?: (to: WritableStream) => Promise<void>;
  /** Keeps the runtime from dropping everything the moment the reader leaves, before `broken` was called. */
  readonly waitUntil?: (flowing: Promise<void>) => void;
  /** The reader left, or the source broke, before the end. */
  readonly broken?: () => void;
}

/** The same, as it flows. */
export function spliceFlowing(pieces: readonly Piece[], flow: Flow = {}): ReadableStream<Uint8Array> {
  const { readable, writable } = new IdentityTransformStream();
  const flowing = pump(pieces, writable, flow);
  flow.waitUntil?.(flowing);
  return readable;
}

async function pump(pieces: readonly Piece[], to: WritableStream, { ready, broken }: Flow) {
  try {
    await ready?.(to);
    for (const piece of pieces) {
      if (flows(piece)) await piece.pipeTo(to, { preventClose: true });
      else await write(to, bytesOf(piece));
    }
    await to.close();
  } catch {
    // The response ends short, which is all that can be told by then.
    broken?.();
    await to.abort().catch(() => {});
    for (const piece of pieces.filter(flows)) await piece.cancel().catch(() => {});
  }
}

async function write(to: WritableStream, bytes: Uint8Array): Promise<void> {
  if (bytes.byteLength === 0) return;
  const writer = to.getWriter();
  await writer.write(bytes);
  writer.releaseLock();
}
