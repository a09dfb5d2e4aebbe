// A body that is read in pieces of bytes, and how long it says that it is.

/** A partly read body: its first bytes (the next reader may reuse their buffer) and the reader of the rest. */
export interface ByteSource {
  readonly head: Uint8Array;
  readonly reader: ByteReader;
}

/**
 * The part of a BYOB reader that is used here. `readAtLeast` of a client's body may return fewer bytes than asked for.
 */
export type ByteReader = Pick<ReadableStreamBYOBReader, "closed" | "cancel" | "readAtLeast">;

/** The length that a Content-Length header states; undefined for a chunked body, whatever else its head states. */
export function statedLength(headers: Headers): number | undefined {
  if (headers.has("Transfer-Encoding")) return undefined;
  const stated = headers.get("content-length");
  return stated !== null && /^\d{1,15}$/.test(stated) ? Number(stated) : undefined;
}
