// What is to be known of a large body before its last byte is sent, taken as it passes: its length, and its SHA-256.
import type { ByteReader, ByteSource } from "../../wire/byte-reader.ts";

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
  // Whoever goes on with the source takes the head's buffer over, and may change it before it was hashed.
  const begun = writer?.write(head.slice());
  const passing: ByteReader = {
    closed: reader.closed,
    cancel: (reason) => reader.cancel(reason),
    // The reader's bytes may be changed in place by whoever gets them.
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
