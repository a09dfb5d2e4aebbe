// `GET, HEAD /uploads/:key`: out of the bucket, whole or a range of it.
import type { Config } from "../../config.ts";
import { Problem } from "../../errors.ts";
import { type ByteRange, resolveRange } from "../media/byte-range.ts";
import { conditionalRange, etagOf, isKnown } from "../media/file-tag.ts";
import { publicHeaders } from "../media/public-file.ts";
import { uploadFile } from "../quota/upload-file.ts";
import { bucketAway } from "./bucket.ts";
import type { UploadKey } from "./upload-key.ts";

export interface Serving {
  readonly bucket: R2Bucket;
  readonly key: UploadKey;
  readonly request: Request;
  readonly config: Pick<Config, "allowedOrigins">;
  readonly now: number;
  /** A cache in front of the Worker keeps whole files and cuts ranges out of them: it is given nothing else. */
  readonly isCachedInFront: boolean;
}

export const unknownUpload = new Problem("NOT_FOUND", "There is no such upload.");

export async function serveFile(serving: Serving): Promise<Response> {
  const { bucket, key, request } = serving;
  const name = uploadFile(key.text);
  const isUnchanged = isKnown(request.headers, etagOf(key));
  if (request.method === "HEAD" || isUnchanged) {
    const object = await bucket.head(name).catch(away);
    if (!object) throw unknownUpload;
    return isUnchanged ? answer(serving, null, 304, {}) : answer(serving, null, 200, fileHeaders(key, object.size));
  }
  const range = serving.isCachedInFront ? undefined : conditionalRange(request.headers, etagOf(key));
  if (range) return serveRange(serving, name, range);
  const object = await bucket.get(name).catch(away);
  if (!object) throw unknownUpload;
  return answer(serving, object.body, 200, fileHeaders(key, object.size));
}

async function serveRange(serving: Serving, name: string, range: ByteRange): Promise<Response> {
  const { bucket, key } = serving;
  const head = await bucket.head(name).catch(away);
  if (!head) throw unknownUpload;
  const { size } = head;
  const asked = resolveRange(range, size);
  if (!asked) {
    const headers = { "Content-Range": `bytes */${size}` };
    throw new Problem("RANGE_NOT_SATISFIABLE", "The file has no such bytes.", headers);
  }
  const { from, to } = asked;
  const object = await bucket.get(name, { range: { offset: from, length: to - from + 1 } }).catch(away);
  if (!object) throw unknownUpload;
  const headers = { ...fileHeaders(key, to - from + 1), "Content-Range": `bytes ${from}-${to}/${size}` };
  return answer(serving, object.body, 206, headers);
}

function away(): never {
  throw bucketAway();
}

/** The name is ours, and so is the type: nothing of what was sent but its bytes. */
function fileHeaders({ text, type }: UploadKey, length: number): Record<string, string> {
  const name = `upload-${text.slice(0, 12)}${text.slice(text.lastIndexOf("."))}`;
  return {
    "Content-Type": type,
    "Content-Disposition": `inline; filename="${name}"`,
    "Content-Length": String(length),
  };
}

function answer(
  { key, config, now }: Serving,
  body: ReadableStream | null,
  status: number,
  more: Record<string, string>,
): Response {
  const headers = {
    ...more,
    ...publicHeaders({ tag: key.text, expiresAt: key.expiresAt, config, now }),
    ETag: etagOf(key),
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
  };
  return new Response(body, { status, headers });
}
