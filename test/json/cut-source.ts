// Bodies whose chunks end exactly where a test wants them to, which no real stream promises.
import type { ByteSource } from "../../src/json/byte-reader.ts";

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/**
 * Hands out the bytes in pieces of the given sizes, over and over; each read takes its buffer away, as the platform's
 * does.
 */
export function cutSource(bytes: Uint8Array, sizes: readonly number[], fails = false) {
  const log = { cancelled: undefined as unknown, read: 0 };
  let turn = 0;
  const readAtLeast = async (_least: number, view: Uint8Array) => {
    const size = Math.max(1, sizes[turn++ % sizes.length] ?? 1);
    const piece = bytes.subarray(log.read, log.read + Math.min(size, view.length));
    const { byteOffset } = view;
    const buffer = (view.buffer as ArrayBuffer).transfer();
    const value = new Uint8Array(buffer, byteOffset, piece.length);
    value.set(piece);
    log.read += piece.length;
    if (piece.length === 0 && fails) throw new Error("the client left");
    return { value, done: piece.length === 0 };
  };
  const cancel = async (reason: unknown) => {
    log.cancelled = reason;
  };
  const reader = { readAtLeast, cancel, closed: Promise.resolve() } as unknown as ReadableStreamBYOBReader;
  const source: ByteSource = { head: new Uint8Array(0), reader };
  return { source, log };
}

/** What arrived, and whether it ended as a complete body does. */
export async function drain(stream: ReadableStream<Uint8Array>): Promise<{ bytes: Uint8Array; complete: boolean }> {
  const chunks: Uint8Array[] = [];
  let complete = true;
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value.slice());
  } catch {
    complete = false;
  }
  const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return { bytes, complete };
}
