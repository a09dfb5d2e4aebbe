// Request bodies of the platform: a small one is read whole, a larger one is stored in the queue as it flows.
import { Problem } from "../errors.ts";
import { parseJson, readHead, readWhole } from "../http/body.ts";
import { bodyProblem, refuseEncoded } from "../http/body-problem.ts";
import { readerOf } from "../http/client-body.ts";
import type { BodyFault } from "../json/body-fault.ts";
import { type ByteSource, statedLength } from "../json/byte-reader.ts";
import type { JsonFault } from "../json/json-scanner.ts";
import { type Carrier, type MemberFault, type MemberScan, scanMembers } from "../json/member-scan.ts";
import { orThrow } from "./answers.ts";
import type { QueueStub, Upload, UploadOperation } from "./queue/queue-calls.ts";
import type { Refusal } from "./queue/views.ts";
import { callOnce } from "./queue-client.ts";

/** What goes to the queue in one call. */
const wholeBytes = 1024 * 1024;

export interface LargeJsonBody {
  readonly source: ByteSource;
  readonly length: number | undefined;
}

/** The whole body where it is small. Refused at once by its stated length, a larger one as it flows. */
export async function openJsonBody(request: Request, limitBytes: number): Promise<Uint8Array | LargeJsonBody> {
  refuseEncoded(request);
  const length = statedLength(request.headers);
  if (length !== undefined && length > limitBytes) throw faulty("too-large", limitBytes);
  if (length !== undefined && length > wholeBytes && request.body) {
    return { source: { head: new Uint8Array(), reader: readerOf(request, request.body) }, length };
  }
  const head = await readHead(request, wholeBytes);
  if ("fault" in head) throw faulty(head.fault, limitBytes);
  return head.ended ? head.bytes : { source: head, length };
}

/** Reads a JSON body whole, up to the limit. */
export async function readJsonBody(request: Request, limitBytes: number): Promise<unknown> {
  refuseEncoded(request);
  const read = await readWhole(request, limitBytes);
  if ("fault" in read) throw faulty(read.fault, limitBytes);
  return parseJsonBody(read.bytes);
}

export function parseJsonBody(bytes: Uint8Array): unknown {
  const result = parseJson(bytes);
  if ("fault" in result) throw faulty(result.fault, bytes.byteLength);
  return result.value;
}

type Scan = Pick<MemberScan, "members" | "read" | "withheld" | "carry" | "accept">;

/** Stores what the scan carries on; undefined where that is nothing. The caller names the upload to the queue, or discards it. */
export async function storeBody(
  { source, length }: LargeJsonBody,
  limitBytes: number,
  scan: Scan,
  uploads: Uploads,
): Promise<Upload | undefined> {
  let fault: MemberFault | undefined;
  try {
    fault = await scanMembers({ source, length, limitBytes, ...scan, carrier: uploads });
  } catch (refusal) {
    await uploads.abort();
    throw refusal;
  }
  if (fault === undefined) return uploads.end();
  await uploads.abort();
  throw uploads.refusal ?? faulty(fault, limitBytes);
}

interface Flowing {
  readonly writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly stored: Promise<Upload | Refusal | undefined>;
}

/** One upload into a queue; when it begins anew, what was stored before is dropped. */
export class Uploads implements Carrier {
  refusal: Problem | undefined;
  readonly #queue: () => QueueStub;
  readonly #operation: UploadOperation;
  #upload: Flowing | undefined;

  constructor(queue: () => QueueStub, operation: UploadOperation) {
    this.#queue = queue;
    this.#operation = operation;
  }

  async begin(): Promise<void> {
    await this.abort();
    const { readable, writable } = new IdentityTransformStream();
    const stored = this.#queue().upload(this.#operation, readable);
    this.#upload = { writer: writable.getWriter(), stored };
    stored.catch(() => {});
    this.#upload.writer.closed.catch(() => {});
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#upload?.writer.write(bytes);
  }

  async end(): Promise<Upload | undefined> {
    if (!this.#upload) return undefined;
    // Where the queue broke, or stopped reading, it is `stored` that says why.
    await this.#upload.writer.close().catch(() => {});
    const stored = await this.#upload.stored.catch(() => undefined);
    if (!stored) throw new Problem("UNAVAILABLE", "the upload was not kept", { "Retry-After": "1" });
    return orThrow(stored);
  }

  /** An upload that does not come to its end is removed by the queue itself. */
  async abort(): Promise<void> {
    if (!this.#upload) return;
    const { writer, stored } = this.#upload;
    this.#upload = undefined;
    await writer.abort(new Error("not carried on")).catch(() => {});
    const result = await stored.catch(() => undefined);
    if (!result) return;
    if ("refused" in result) this.refusal = refusalOf(result);
    else await callOnce(this.#queue, (queue) => queue.discard(result.upload)).catch(() => {});
  }
}

function refusalOf(refusal: Refusal): Problem | undefined {
  try {
    orThrow(refusal);
    return undefined;
  } catch (problem) {
    return problem instanceof Problem ? problem : undefined;
  }
}

function faulty(fault: BodyFault | JsonFault | MemberFault, limitBytes: number): Problem {
  switch (fault) {
    case "member-too-large":
      return new Problem("INVALID_REQUEST", "body: a member beside the payload is too large");
    case "sink-gone":
      return new Problem("UNAVAILABLE", "the queue cannot be reached", { "Retry-After": "1" });
    default:
      return bodyProblem(fault, limitBytes);
  }
}
