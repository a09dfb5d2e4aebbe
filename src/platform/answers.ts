// What the queue says, as responses: refusals become problems, a job's output is spliced in as the bytes that it is.

import { Problem } from "../errors.ts";
import { concat } from "../json/concat.ts";
import type { Body, JobView, Refusal } from "./queue/views.ts";

const encoder = new TextEncoder();
const json = { "Content-Type": "application/json" };

export function accepted<T extends object>(result: T | Refusal): T {
  if (!("refused" in result)) return result;
  const { refused, detail, retryAfterSeconds } = result;
  const headers = retryAfterSeconds === undefined ? {} : { "Retry-After": String(retryAfterSeconds) };
  throw new Problem(refused, detail, headers);
}

export function answerJob(view: JobView | Refusal): Response {
  const { head, output } = accepted(view);
  if (output === null) return Response.json(head);
  return new Response(splice(`${JSON.stringify(head).slice(0, -1)},"output":`, output, "}"), { headers: json });
}

/** Text, bytes, text as one body; a stream is not read here. */
export function splice(before: string, middle: Body, after: string): BodyInit {
  if (middle instanceof ReadableStream) return spliceFlowing(before, middle, after);
  return concat([encoder.encode(before), middle, encoder.encode(after)]);
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
export function spliceFlowing(
  before: string,
  middle: Body,
  after: string,
  flow: Flow = {},
): ReadableStream<Uint8Array> {
  const { readable, writable } = new IdentityTransformStream();
  const flowing = pump(encoder.encode(before), middle, encoder.encode(after), writable, flow);
  flow.waitUntil?.(flowing);
  return readable;
}

async function pump(head: Uint8Array, middle: Body, tail: Uint8Array, to: WritableStream, { ready, broken }: Flow) {
  try {
    await ready?.(to);
    await write(to, head);
    if (middle instanceof Uint8Array) await write(to, middle);
    else await middle.pipeTo(to, { preventClose: true });
    await write(to, tail);
    await to.close();
  } catch {
    // The response ends short, which is all that can be told by then.
    broken?.();
    await to.abort().catch(() => {});
  }
}

async function write(to: WritableStream, bytes: Uint8Array): Promise<void> {
  if (bytes.byteLength === 0) return;
  const writer = to.getWriter();
  await writer.write(bytes);
  writer.releaseLock();
}
