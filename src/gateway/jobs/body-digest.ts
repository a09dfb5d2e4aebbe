// What a large body is known by: the SHA-256 of all of it.
import { type LargeBody, readPieces } from "./request-body.ts";

/** The digest of a body that is not relayed. */
export async function readDigest(body: LargeBody): Promise<string> {
  const hash = new crypto.DigestStream("SHA-256");
  const writer = hash.getWriter();
  await readPieces(body, (piece) => writer.write(piece));
  await writer.close();
  return new Uint8Array(await hash.digest).toHex();
}
