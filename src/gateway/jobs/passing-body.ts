// Measures a large body as it streams: its length and, if wanted, its SHA-256. Both are known before its last byte is
// sent.
import type { ByteReader, ByteSource } from "../../json/byte-reader.ts";

export interface MeasuredBody {
  /** The same bytes. */
  readonly source: ByteSource;
  /** How many have passed. */
  readonly bytes: () => number;
  /** Where it is wanted. Asked once, when the source was read to its end. */
  readonly digest?: () => Promise<string>;
}

export function measureAsItPasses({ head, reader }: ByteSource, digested: boolean): MeasuredBody {
  let bytes = head.byteLength;
  const hash = digested ? new crypto.DigestStream("SHA-256") : undefined;
  const writer = hash?.getWriter();
  // A copy is hashed: the next reader of the source reuses the head's buffer, and may change it first.
  const begun = writer?.write(head.slice());
  const passing: ByteReader = {
    closed: reader.closed,
    cancel: (reason) => reader.cancel(reason),
    // A copy is hashed here too: the scanner changes the bytes in place.
    readAtLeast: async (count, view) => {
      await begun;
      const read = await reader.readAtLeast(count, view);
      bytes += read.value?.byteLength ?? 0;
      if (read.value) await writer?.write(read.value);
      return read;
    },
  };
  const source = { head, reader: passing };
  if (!hash || !writer) return { source, bytes: () => bytes };
  const digest = async () => {
    await writer.close();
    return new Uint8Array(await hash.digest).toHex();
  };
  return { source, bytes: () => bytes, digest };
}
