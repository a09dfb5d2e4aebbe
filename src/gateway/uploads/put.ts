// `PUT /uploads/:key` by its signed URL: checked by its first bytes, streamed into the bucket, settled with the payer's meter.
import { type Remote, repeated } from "../../durable/remote.ts";
import { Problem } from "../../errors.ts";
import { bodyProblem, isEncoded } from "../../http/body-problem.ts";
import { readerOf } from "../../http/client-body.ts";
import { Pace } from "../../http/pace.ts";
import { faultOf } from "../../json/body-fault.ts";
import { statedLength } from "../../json/byte-reader.ts";
import type { Call } from "../call.ts";
import { sniffBytes } from "../media/sniff.ts";
import { meterById, orUnavailable } from "../quota/meter-stub.ts";
import type { UploadCalls } from "../quota/upload-calls.ts";
import { uploadFile } from "../quota/upload-file.ts";
import { bucketOf } from "./bucket.ts";
import { isOfType, readType } from "./file-types.ts";
import { type PutTicket, putTicketsOf } from "./put-ticket.ts";
import { storeFile, tooLarge, tooShort, WrongSize } from "./store-file.ts";
import type { UploadKey } from "./upload-key.ts";

/** Answers once the file is there and counted. */
export async function putFile(call: Call, key: UploadKey): Promise<PutTicket> {
  const bucket = bucketOf(call);
  const ticket = readTicket(call, key);
  const meter = () => meterById(call.env, ticket.meter) as unknown as Remote<UploadCalls>;
  try {
    const opened = await openFile(call.request, ticket);
    demandOpen(await orUnavailable(repeated(() => meter().beginUpload(key.text))));
    const { type, bytes } = ticket;
    const isStored = await storeFile(bucket, {
      ...opened,
      name: uploadFile(key.text),
      type,
      bytes,
      request: call.request,
    });
    await settle(call, meter, bucket, key);
    if (!isStored) throw usedUp();
    return ticket;
  } catch (error) {
    // What its client still sends is read before it is answered, else its connection would break.
    const { body, bodyUsed } = call.request;
    if (body && bodyUsed && !body.locked) readerOf(call.request, body);
    if (isWrongFile(error)) await repeated(() => meter().refuseUpload(key.text)).catch(() => {});
    throw error;
  }
}

function readTicket(call: Call, { text, type }: UploadKey): PutTicket {
  const ticket = putTicketsOf(call.config).read(text, type, new URL(call.request.url).searchParams);
  if (!ticket) throw new Problem("FORBIDDEN", "The upload's address is not signed, or was changed.");
  call.exchange.owner = ticket.ownerHash;
  if (ticket.until <= call.exchange.startedAt) {
    throw new Problem("GONE", `This upload had to begin before ${new Date(ticket.until).toISOString()}.`);
  }
  return ticket;
}

class WrongType extends Problem {}

/** What came is not what was announced, and never will be: its reservation is given back. */
function isWrongFile(error: unknown): boolean {
  return error instanceof WrongType || error instanceof WrongSize;
}

/** What the head of the request and the first bytes of its body say. */
async function openFile(request: Request, { type, bytes }: PutTicket) {
  const said = request.headers.get("Content-Type");
  if (said !== null && readType(said) !== type) {
    throw new WrongType("UNSUPPORTED_TYPE", `Content-Type: ${type} was announced`);
  }
  if (isEncoded(request.headers)) throw new WrongType("UNSUPPORTED_TYPE", "Content-Encoding: none is taken");
  const stated = statedLength(request.headers);
  if (stated !== undefined && stated > bytes) throw tooLarge(bytes);
  if (stated !== undefined && stated < bytes) throw tooShort(bytes, stated);
  if (request.body === null) throw tooShort(bytes, 0);
  const head = await readFirst(request.body, Math.min(sniffBytes, bytes));
  if (isOfType(head, type)) return { head, isStated: stated !== undefined };
  throw new WrongType("UNSUPPORTED_TYPE", `The file's first bytes are not those of ${type}.`);
}

/** At most so many; the rest stays in the body. */
async function readFirst(body: ReadableStream<Uint8Array>, count: number): Promise<Uint8Array> {
  const reader = body.getReader({ mode: "byob" });
  reader.closed.catch(() => {});
  const reading = reader.readAtLeast(count, new Uint8Array(count));
  try {
    const read = await new Pace().take(reading, ({ value }) => value?.byteLength ?? 0);
    return (read as { value?: Uint8Array }).value ?? new Uint8Array();
  } catch (error) {
    throw bodyProblem(faultOf(error), count);
  } finally {
    reader.releaseLock();
  }
}

/** A PUT that finds its file stored settles the upload too: the call that stored it may have failed to. */
async function settle(
  call: Call,
  meter: () => Remote<UploadCalls>,
  bucket: R2Bucket,
  { text }: UploadKey,
): Promise<void> {
  const standing = await orUnavailable(repeated(() => meter().keepUpload(text)));
  if (standing !== "over") return;
  // Its owner deleted it meanwhile; the meter removes it as well, should this fail.
  call.waitUntil(bucket.delete(uploadFile(text)).catch(() => {}));
  throw over();
}

function demandOpen(standing: "open" | "kept" | "over"): void {
  if (standing === "kept") throw usedUp();
  if (standing === "over") throw over();
}

function usedUp(): Problem {
  return new Problem("ALREADY_UPLOADED", "This upload's file is there already: its address works once.");
}

function over(): Problem {
  return new Problem("GONE", "This upload is over: it was refused, deleted, or took too long.");
}
