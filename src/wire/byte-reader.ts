// A body that is read in pieces of bytes, and how long it says that it is.

/** A body that was begun: the bytes read so far, in a buffer that whoever reads on may take, and the reader of the rest. */
export interface ByteSource {
  readonly head: Uint8Array;
  readonly reader: ByteReader;
}

/** As much of a reader as whoever goes on with a body asks of it. One of a client's may hand over less than the least asked for. */
export type ByteReader = Pick<ReadableStreamBYOBReader, "closed" | "cancel" | "readAtLeast">;

/** The length that a Content-Length header states; undefined for a chunked body, whatever else its head states. */
export function statedLength(headers: Headers): number | undefined {
  if (headers.has("Transfer-Encoding")) return undefined;
  const stated = headers.get("content-length");
  return stated !== null && /^\d{1,15}$/.test(stated) ? Number(stated) : undefined;
}
