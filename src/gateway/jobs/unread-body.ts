// A large body that is relayed unread: bounded as it flows, and never held.
import { type LargeBody, readPieces } from "../request-body.ts";

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
  let end: "cut" | "whole" | undefined;
  const sent = readPieces(body, (piece) => writer.write(piece)).then(
    async (total) => {
      end ??= "whole";
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
    end ??= "cut";
    if (end === "cut") writer.abort("cut off").catch(() => {});
    return end === "cut";
  };
  return { stream: readable, sent, cut };
}
