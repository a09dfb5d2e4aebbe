// A file on its way: its first bytes, which were looked at, and then the rest, never held whole and never past the limit. A
// source that stalls is left.
import { Pace } from "../../http/pace.ts";
import { maxMediaBytes, type Opened } from "./source.ts";

const blockBytes = 256 * 1024;

/**
 * The stream, and the work of filling it: whether all of the file went through. It never throws: a source that breaks leaves
 * the stream broken.
 */
export function rejoin({ head, rest, size }: Pick<Opened, "head" | "rest" | "size">): {
  readonly stream: ReadableStream<Uint8Array>;
  readonly work: Promise<boolean>;
} {
  const { readable, writable } = size === undefined ? new IdentityTransformStream() : new FixedLengthStream(size);
  const writer = writable.getWriter();
  const flow = async () => {
    await writer.write(head);
    const sent = await pump(writer, head.byteLength, rest);
    // The stream breaks off there too, and its writer does not hear of it.
    if (size !== undefined && sent !== size) throw new Error("shorter than stated");
    await writer.close();
  };
  const work = flow().then(
    () => true,
    async (error) => {
      await Promise.allSettled([writer.abort(error), rest.cancel(error)]);
      return false;
    },
  );
  return { stream: readable, work };
}

/** Returns how many bytes there were. Only reads are timed: a slow client is not the source's fault. */
async function pump(
  to: WritableStreamDefaultWriter<Uint8Array>,
  begun: number,
  rest: ReadableStreamBYOBReader,
): Promise<number> {
  const pace = new Pace();
  let sent = begun;
  let block: ArrayBufferLike = new ArrayBuffer(blockBytes);
  for (;;) {
    const { least } = pace;
    const reading = rest.readAtLeast(least, new Uint8Array(block));
    const read = await pace.take(reading, ({ value }) => value?.byteLength ?? 0);
    const { value } = read as { value?: Uint8Array };
    if (value && value.byteLength > 0) {
      sent += value.byteLength;
      if (sent > maxMediaBytes) throw new Error("larger than the limit");
      await to.write(value);
      block = value.buffer;
    }
    if (read.done || !value || value.byteLength < least) return sent;
  }
}
