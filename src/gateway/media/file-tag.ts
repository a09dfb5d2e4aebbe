// The tag of a file that is written once, and what a client asks on the condition that it has it (RFC 9110, 13).
import { type ByteRange, readRange } from "./byte-range.ts";

/** Its content never changes under its key. */
export function etagOf({ text }: { readonly text: string }): string {
  return `"${text}"`;
}

/** The client has the file: `If-None-Match` names it. */
export function isKnown(headers: Headers, etag: string): boolean {
  const header = headers.get("If-None-Match");
  if (header === null) return false;
  return header.split(",").some((one) => one.trim() === "*" || one.trim().replace(/^W\//, "") === etag);
}

/** `If-Range` with another tag asks for the whole. */
export function conditionalRange(headers: Headers, etag: string): ByteRange | undefined {
  const ifRange = headers.get("If-Range");
  if (ifRange !== null && ifRange !== etag) return undefined;
  return readRange(headers.get("Range") ?? undefined);
}
