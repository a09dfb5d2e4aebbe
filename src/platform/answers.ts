// What the queue says, as responses: refusals become problems, a job's output is spliced in as the bytes that it is.
import { Problem } from "../errors.ts";
import type { Body, JobView, Refusal } from "./queue/endpoint-queue.ts";

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
  const [head, tail] = [encoder.encode(before), encoder.encode(after)];
  if (middle instanceof Uint8Array) {
    const whole = new Uint8Array(head.byteLength + middle.byteLength + tail.byteLength);
    whole.set(head);
    whole.set(middle, head.byteLength);
    whole.set(tail, head.byteLength + middle.byteLength);
    return whole;
  }
  const { readable, writable } = new IdentityTransformStream();
  void pump(head, middle, tail, writable);
  return readable;
}

async function pump(head: Uint8Array, middle: ReadableStream<Uint8Array>, tail: Uint8Array, to: WritableStream) {
  try {
    await write(to, head);
    await middle.pipeTo(to, { preventClose: true });
    await write(to, tail);
    await to.close();
  } catch {
    // The reader left or the source broke: the response ends short, which is all that can be told by then.
    await to.abort().catch(() => {});
  }
}

async function write(to: WritableStream, bytes: Uint8Array): Promise<void> {
  const writer = to.getWriter();
  await writer.write(bytes);
  writer.releaseLock();
}
