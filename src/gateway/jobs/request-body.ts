// A request's body at the gateway's door: held where it is small, handed over where it is not, refused where it is too large.
import { isSmall, parseJson, readHead, readSmall } from "../../http/body.ts";
import { bodyProblem, refuseEncoded } from "../../http/body-problem.ts";
import { faultOf } from "../../json/body-fault.ts";
import { type ByteSource, statedLength } from "../../json/byte-reader.ts";

/** What is read whole, parsed, and may be reused or joined; a larger body streams. */
export const wholeBytes = 256 * 1024;

export type OpenedBody = { readonly whole: Uint8Array } | { readonly large: LargeBody };
export interface LargeBody {
  readonly source: ByteSource;
  /** As Content-Length states it; undefined for a chunked body. */
  readonly length: number | undefined;
  readonly limitBytes: number;
}

export async function openBody(request: Request, limitBytes: number): Promise<OpenedBody> {
  refuseEncoded(request);
  const length = statedLength(request.headers);
  if (length !== undefined && length > limitBytes) throw bodyProblem("too-large", limitBytes);
  const head = isSmall(request) ? await readSmall(request) : await readHead(request, wholeBytes);
  if ("fault" in head) throw bodyProblem(head.fault, limitBytes);
  if (head.ended) return { whole: head.bytes };
  return { large: { source: head, length, limitBytes } };
}

/** A large body, piece by piece within its limit; a piece's bytes are gone once it was taken. Answers with its length. */
export async function readPieces(
  { source: { head, reader }, length, limitBytes }: LargeBody,
  take: (piece: Uint8Array) => Promise<void>,
): Promise<number> {
  await take(head);
  let total = head.byteLength;
  let buffer: ArrayBufferLike = new ArrayBuffer(pieceBytes);
  for (let ended = false; !ended; ) {
    const { value, done }: { value?: Uint8Array | undefined; done: boolean } = await reader
      .readAtLeast(pieceBytes, new Uint8Array(buffer))
      .catch((error: unknown) => {
        throw bodyProblem(faultOf(error), limitBytes);
      });
    total += value?.byteLength ?? 0;
    if (total > limitBytes) {
      reader.cancel("too large").catch(() => {});
      throw bodyProblem("too-large", limitBytes);
    }
    if (value?.byteLength) await take(value);
    if (value) buffer = value.buffer;
    ended = done || value === undefined;
  }
  if (length !== undefined && total !== length) throw bodyProblem("source-gone", limitBytes);
  return total;
}
const pieceBytes = 64 * 1024;

export function parseBody(bytes: Uint8Array): unknown {
  const parsed = parseJson(bytes);
  if ("fault" in parsed) throw bodyProblem(parsed.fault, bytes.byteLength);
  return parsed.value;
}
