// A large body that is relayed unread: bounded as it flows, and never held.
import { type LargeBody, readPieces } from "../request-body.ts";
import { LastByte } from "./last-byte.ts";

export interface UnreadBody {
  readonly stream: ReadableStream<Uint8Array>;
  /** Settles when all of it was sent: with its length, or with what cut it off. */
  readonly sent: Promise<number>;
  /** Sends no more of it: whether some was left, so that nobody has all of it. */
  readonly cut: () => boolean;
}

export function relayUnread(body: LargeBody): UnreadBody {
  const { length } = body;
  const { readable, writable } = length === undefined ? new IdentityTransformStream() : new FixedLengthStream(length);
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  const lastByte = new LastByte();
  const sent = readPieces(body, (piece) => writer.write(piece)).then(
    async (total) => {
      lastByte.send();
      await writer.close();
      return total;
    },
    async (error: unknown) => {
      await Promise.allSettled([writer.abort(error), body.source.reader.cancel("cut off")]);
      throw error;
    },
  );
  sent.catch(() => {});
  const cut = () => {
    const isCut = lastByte.cut();
    if (isCut) writer.abort("cut off").catch(() => {});
    return isCut;
  };
  return { stream: readable, sent, cut };
}
