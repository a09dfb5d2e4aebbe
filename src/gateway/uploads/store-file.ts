// A file on its way into the bucket: streamed, never held; written once, whole, or not at all.
import { Problem } from "../../errors.ts";
import { bodyProblem } from "../../http/body-problem.ts";
import { readerOf } from "../../http/client-body.ts";
import { faultOf } from "../../json/body-fault.ts";
import { bucketAway } from "./bucket.ts";

export interface File {
  readonly name: string;
  readonly type: string;
  /** Exactly. */
  readonly bytes: number;
  /** What was read of it already, at most all. */
  readonly head: Uint8Array;
  /** Its body has the rest. */
  readonly request: Request;
  /** HTTP holds the body to that length. */
  readonly isStated: boolean;
}

const blockBytes = 256 * 1024;
/** A client may pause for so long, and be so slow; and no file lies open longer, since a meter counts on that. */
const patience = { ms: 10_000, leastBytesPerSecond: 1024, mostMs: 10 * 60_000 };

/** The client sent something else than it said it would: more, or less. */
export class WrongSize extends Problem {}

/** False where there is such a file already. */
export async function storeFile(bucket: R2Bucket, file: File): Promise<boolean> {
  const { readable, writable } = new FixedLengthStream(file.bytes);
  const onlyIf = new Headers({ "If-None-Match": "*" });
  const putting = bucket.put(file.name, readable, { onlyIf, httpMetadata: { contentType: file.type } }).then(
    (object) => object !== null,
    () => undefined,
  );
  let sent: Promise<void> | undefined;
  const over = new AbortController();
  const tooSlow = bodyProblem("too-slow", file.bytes);
  const timer = setTimeout(() => over.abort(tooSlow), patienceFor(file));
  const aborted = new Promise<never>((_, reject) => {
    over.signal.addEventListener("abort", () => reject(over.signal.reason));
  });
  aborted.catch(() => {});
  try {
    sent = file.isStated ? pipeWhole(writable, file, over.signal) : sendWhole(writable, file);
    sent.catch(() => {});
    // A bucket that refuses may do so in the middle.
    await Promise.race([sent, putting, aborted]);
    const isStored = await Promise.race([putting, aborted]);
    if (isStored === undefined) throw bucketAway();
    return isStored;
  } finally {
    clearTimeout(timer);
    over.abort(tooSlow);
    // Then the body is its own again.
    if (file.isStated) await sent?.catch(() => {});
  }
}

function patienceFor({ bytes }: File): number {
  return Math.min(patience.mostMs, patience.ms + (1000 * bytes) / patience.leastBytesPerSecond);
}

/** By the runtime, which is several times as fast as reading. */
async function pipeWhole(
  writable: WritableStream<Uint8Array>,
  { head, request, bytes }: File,
  signal: AbortSignal,
): Promise<void> {
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  // A bucket that refuses at once reads nothing, and a write would wait for it for ever.
  signal.addEventListener("abort", () => void writer.abort(signal.reason).catch(() => {}), { once: true });
  await writer.write(head).catch(stopped);
  writer.releaseLock();
  try {
    await request.body?.pipeTo(writable, { signal, preventCancel: true });
  } catch (error) {
    await writable.abort(error).catch(() => {});
    if (signal.aborted) throw signal.reason;
    throw (await hasLeft(request)) ? bodyProblem("source-gone", bytes) : bucketAway();
  }
}

/** Whether the body broke off. Of one that did not, its client still sends the rest, which is read before the answer. */
async function hasLeft(request: Request): Promise<boolean> {
  if (!request.body) return true;
  const { closed } = readerOf(request, request.body);
  const broken = closed.then(
    () => false,
    () => true,
  );
  return Promise.race([broken, scheduler.wait(0).then(() => false)]);
}

/** The last bytes wait for the end of the body: what goes on is never stored. */
async function sendWhole(writable: WritableStream<Uint8Array>, { head, request, bytes }: File): Promise<void> {
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  try {
    if (request.body) await sendBy(writer, readerOf(request, request.body), head, bytes);
    else throw tooShort(bytes, head.byteLength);
  } catch (error) {
    await writer.abort(error).catch(() => {});
    throw error;
  }
}

async function sendBy(
  writer: WritableStreamDefaultWriter<Uint8Array>,
  rest: ReturnType<typeof readerOf>,
  head: Uint8Array,
  bytes: number,
): Promise<void> {
  rest.closed.catch(() => {});
  let held: Uint8Array = head;
  let total = head.byteLength;
  let block: ArrayBufferLike = new ArrayBuffer(blockBytes);
  for (;;) {
    const read = await rest.readAtLeast(blockBytes, new Uint8Array(block)).catch((error: unknown) => {
      throw bodyProblem(faultOf(error), bytes);
    });
    const { value } = read as { value?: Uint8Array };
    if (read.done || value === undefined || value.byteLength === 0) break;
    total += value.byteLength;
    if (total > bytes) throw tooLarge(bytes);
    await writer.write(held).catch(stopped);
    // The one that was held is free again.
    block = held === head ? new ArrayBuffer(blockBytes) : held.buffer;
    held = value;
  }
  if (total < bytes) throw tooShort(bytes, total);
  await writer.write(held).catch(stopped);
  await writer.close().catch(stopped);
}

function stopped(): never {
  throw bucketAway();
}

export function tooLarge(bytes: number): Problem {
  return new WrongSize("PAYLOAD_TOO_LARGE", `The file is larger than the ${bytes} bytes that were announced.`);
}

export function tooShort(bytes: number, sent: number): Problem {
  return new WrongSize("INVALID_REQUEST", `body: ended after ${sent} of the ${bytes} bytes that were announced`);
}
