// A large body that is relayed unread: bounded as it flows, and never held.
import { type LargeBody, readPieces } from "../request-body.ts";

export interface UnreadBody {
  readonly stream: ReadableStream<Uint8Array>;
  /** Settles when all of it was sent: with its length, or with what cut it off. */
  readonly sent: Promise<number>;
}

export function relayUnread(body: LargeBody): UnreadBody {
  const { length } = body;
  const { readable, writable } = length === undefined ? new IdentityTransformStream() : new FixedLengthStream(length);
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  const sent = readPieces(body, (piece) => writer.write(piece)).then(
    async (total) => {
      await writer.close();
      return total;
    },
    async (error: unknown) => {
      await Promise.allSettled([writer.abort(error), body.source.reader.cancel("cut off")]);
      throw error;
    },
  );
  sent.catch(() => {});
  return { stream: readable, sent };
}
