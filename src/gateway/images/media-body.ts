// A file on its way: its first bytes, which were looked at, and then the rest, never held whole and never past the limit.
import { maxMediaBytes, type Opened } from "./source.ts";

const blockBytes = 256 * 1024;

/**
 * The stream, and the work of filling it: whether all of the file went through. It never throws: a source that breaks leaves
 * the stream broken.
 */
export function rejoin(opened: Pick<Opened, "response" | "head" | "rest" | "size">): {
  readonly stream: ReadableStream<Uint8Array>;
  readonly work: Promise<boolean>;
} {
  const { head, rest, size } = opened;
  const { readable, writable } = size === undefined ? new IdentityTransformStream() : new FixedLengthStream(size);
  const writer = writable.getWriter();
  const flow = async () => {
    await writer.write(head);
    if (size === undefined) return pump(writer, head.byteLength, rest);
    // What states its size is held to it by the stream: the runtime carries it on by itself.
    writer.releaseLock();
    rest.releaseLock();
    await opened.response.body?.pipeTo(writable);
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

async function pump(
  to: WritableStreamDefaultWriter<Uint8Array>,
  begun: number,
  rest: ReadableStreamBYOBReader,
): Promise<void> {
  let sent = begun;
  let block: ArrayBufferLike = new ArrayBuffer(blockBytes);
  for (;;) {
    const read = await rest.readAtLeast(blockBytes, new Uint8Array(block));
    const { value } = read as { value?: Uint8Array };
    if (value && value.byteLength > 0) {
      sent += value.byteLength;
      if (sent > maxMediaBytes) throw new Error("larger than the limit");
      await to.write(value);
      block = value.buffer;
    }
    if (read.done || !value || value.byteLength < blockBytes) break;
  }
  await to.close();
}
