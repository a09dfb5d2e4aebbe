// A request's body at the gateway's door: held where it is small, handed over where it is not, refused where it is too large.
import { type ByteSource, parseJson, readHead, readWhole, statedLength } from "../wire/body.ts";
import { bodyProblem } from "../wire/body-problem.ts";

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
  const length = statedLength(request.headers);
  if (length !== undefined && length > limitBytes) throw bodyProblem("too-large", limitBytes);
  const head = await readHead(request.body, wholeBytes, length);
  if ("fault" in head) throw bodyProblem(head.fault, limitBytes);
  return head.ended ? { whole: head.bytes } : { large: { source: head, length, limitBytes } };
}

export async function readBody(request: Request, limitBytes: number): Promise<Uint8Array> {
  const whole = await readWhole(request.body, limitBytes, statedLength(request.headers));
  if ("fault" in whole) throw bodyProblem(whole.fault, limitBytes);
  return whole.bytes;
}

export function parseBody(bytes: Uint8Array): unknown {
  const parsed = parseJson(bytes);
  if ("fault" in parsed) throw bodyProblem(parsed.fault, bytes.byteLength);
  return parsed.value;
}
