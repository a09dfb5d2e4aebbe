// What a large body is known by: the SHA-256 of all of it, taken as it passes, or of one that is read for nothing else.
import type { ByteReader, ByteSource } from "../../wire/body.ts";
import { type LargeBody, readPieces } from "../request-body.ts";

export interface DigestedBody {
  /** The same bytes. */
  readonly source: ByteSource;
  /** Asked once, when the source was read to its end. */
  readonly digest: () => Promise<string>;
}

export function digestAsItPasses({ head, reader }: ByteSource): DigestedBody {
  const hash = new crypto.DigestStream("SHA-256");
  const writer = hash.getWriter();
  // Whoever goes on with the source takes the head's buffer over, and may change it before it was hashed.
  const begun = writer.write(head.slice());
  const passing: ByteReader = {
    closed: reader.closed,
    cancel: (reason) => reader.cancel(reason),
    // The reader's bytes may be changed in place by whoever gets them.
    readAtLeast: async (count, view) => {
      await begun;
      const read = await reader.readAtLeast(count, view);
      if (read.value) await writer.write(read.value);
      return read;
    },
  };
  const digest = async () => {
    await writer.close();
    return new Uint8Array(await hash.digest).toHex();
  };
  return { source: { head, reader: passing }, digest };
}

/** Of a body that nobody relays. */
export async function readDigest(body: LargeBody): Promise<string> {
  const hash = new crypto.DigestStream("SHA-256");
  const writer = hash.getWriter();
  await readPieces(body, (piece) => writer.write(piece));
  await writer.close();
  return new Uint8Array(await hash.digest).toHex();
}
