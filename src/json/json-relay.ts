// Carries JSON from a body to an output through the scanner, in one reused buffer, and makes the edits asked for.
import { type BodyFault, faultOf } from "./body-fault.ts";
import type { ByteReader, ByteSource } from "./byte-reader.ts";
import type { JsonListener } from "./json-listener.ts";
import { ALL_BYTES, STRICT_BYTES } from "./json-place.ts";
import { type JsonFault, JsonScanner } from "./json-scanner.ts";
import { FOUND, type SecretSearch } from "./secret-search.ts";
import { Utf8Text } from "./utf8-text.ts";

/** Larger buffers gain little, and every upload in flight holds one, beside the copies that the runtime makes of it. */
const BUFFER_BYTES = 256 * 1024;

/** Bytes to put in the place of those from `from` to `to`, indices into the scan under way; undefined leaves them. */
export interface Edit {
  from: number;
  /** Infinite while it is not known: what comes from `from` on waits for it. */
  to: number;
  readonly bytes: Uint8Array | Promise<Uint8Array | undefined>;
  /** The edit only removes bytes: they can be dropped before its end is known. */
  isCut?: boolean;
}

export interface Relay {
  readonly source: ReadableStream<Uint8Array> | ByteSource;
  readonly output: WritableStream<Uint8Array>;
  readonly listener: JsonListener;
  /** In the order of their places. The relay removes the edits that it has made. */
  readonly edits: Edit[];
  /** If it is known, a body that is too large is refused before it is read, and a shorter one counts as broken off. */
  readonly length?: number | undefined;
  readonly limitBytes: number;
  readonly bufferBytes?: number | undefined;
  readonly forbidden?: Forbidden | undefined;
  /** Long strings are read to their ends. */
  readonly toTheLetter?: boolean | undefined;
  /** Asked after each scan: is what was read already enough to refuse? */
  stopped(): boolean;
  /** Asked when the text is whole; the last byte waits for it. */
  accept(): boolean | Promise<boolean>;
}

/** Secrets that must not pass in any spelling: the relay stops in front of one. */
export interface Forbidden {
  readonly search: SecretSearch;
  found(): void;
}

/** `source-gone`: the body broke off. `sink-gone`: nobody reads the output any more. `stopped`: the caller refused. */
export type RelayFault = JsonFault | BodyFault | "sink-gone" | "stopped";

class Broken extends Error {
  readonly fault: RelayFault;
  constructor(fault: RelayFault) {
    super(fault);
    this.fault = fault;
  }
}

const broken = (fault: RelayFault) => (): never => {
  throw new Broken(fault);
};

/**
 * Resolves when the output was closed, or aborted because of a fault; never rejects. A faulty text is never sent whole.
 */
export async function relayJson(relay: Relay): Promise<RelayFault | undefined> {
  const writer = relay.output.getWriter();
  writer.closed.catch(() => {});
  const { head, reader } =
    "head" in relay.source ? relay.source : { head: undefined, reader: relay.source.getReader({ mode: "byob" }) };
  reader.closed.catch(() => {});
  try {
    if (relay.length !== undefined && relay.length > relay.limitBytes) throw new Broken("too-large");
    await pump(relay, head, reader, writer);
    return undefined;
  } catch (error) {
    // What the scanner passes over is read to the letter where the listener keeps it.
    const fault = error instanceof Broken ? error.fault : error instanceof SyntaxError ? "not-json" : "stopped";
    await Promise.allSettled([writer.abort(new Error(fault)), reader.cancel(fault)]);
    return fault;
  }
}

async function pump(
  relay: Relay,
  head: Uint8Array | undefined,
  reader: ByteReader,
  writer: WritableStreamDefaultWriter<Uint8Array>,
): Promise<void> {
  const { edits, forbidden } = relay;
  const text = new Utf8Text();
  const scanner = new JsonScanner(relay.listener, relay.toTheLetter ? ALL_BYTES : STRICT_BYTES);
  // A possible beginning of a secret is held back: the buffer must have room for the rest of it.
  const least = 2 * (forbidden?.search.longest ?? 0);
  let bytes = bufferFor(head, Math.max(relay.bufferBytes ?? BUFFER_BYTES, least));
  /** Bytes in the buffer that are not written yet, and how many of them the scanner has read. */
  let filled = 0;
  let scanned = 0;
  /** A secret may have begun from here on. */
  let clear = 0;
  let total = 0;

  const write = async (chunk: Uint8Array): Promise<void> => {
    if (chunk.length > 0) await writer.write(chunk).catch(broken("sink-gone"));
  };
  const flush = async (hold: number): Promise<void> => {
    let at = 0;
    for (let edit = edits[0]; edit !== undefined && edit.to <= hold; edit = edits[0]) {
      await write(bytes.subarray(at, edit.from));
      await write((await edit.bytes) ?? bytes.subarray(edit.from, edit.to));
      at = edit.to;
      edits.shift();
    }
    const [cut] = edits;
    if (cut?.isCut && cut.from < hold) {
      await write(bytes.subarray(at, cut.from));
      cut.from = hold;
    } else await write(bytes.subarray(at, hold));
  };

  for (;;) {
    let fresh = 0;
    if (total === 0 && head !== undefined && head.length > 0) {
      fresh = head.length;
    } else {
      const room = bytes.subarray(filled);
      // An unfinished token fills the whole buffer, e.g. endless white space.
      if (room.length === 0) throw new Broken("too-large");
      const { value, done } = await reader.readAtLeast(room.length, room).catch((error: unknown) => {
        throw new Broken(faultOf(error));
      });
      if (value !== undefined) bytes = new Uint8Array(value.buffer);
      if (done || value === undefined) break;
      fresh = value.byteLength;
    }
    total += fresh;
    if (total > relay.limitBytes) throw new Broken("too-large");
    if (!text.take(bytes, filled, filled + fresh)) throw new Broken("not-json");
    filled += fresh;
    clear = forbidden ? forbidden.search.look(bytes, clear, filled) : filled;
    if (clear === FOUND) {
      forbidden?.found();
      throw new Broken("stopped");
    }

    const next = scanner.scan(bytes, scanned, filled);
    if (next < 0) throw new Broken(scanner.fault ?? "not-json");
    if (relay.stopped()) throw new Broken("stopped");

    // The last byte of what came may be the body's last, and no edit is made by halves.
    const settled = Math.min(scanner.held(next), clear, filled - 1);
    const open = edits.find((edit) => edit.to > settled && !edit.isCut);
    const hold = Math.min(settled, open?.from ?? settled);
    await flush(hold);
    bytes.copyWithin(0, hold, filled);
    scanner.shift(hold);
    relay.listener.shifted?.(hold);
    for (const edit of edits) {
      edit.from -= hold;
      edit.to -= hold;
    }
    filled -= hold;
    clear -= hold;
    scanned = next - hold;
  }

  if (relay.length !== undefined && total !== relay.length) throw new Broken("source-gone");
  if (scanned !== filled || !scanner.finish(bytes, filled)) throw new Broken(scanner.fault ?? "not-json");
  if (relay.stopped() || !(await relay.accept())) throw new Broken("stopped");
  await flush(filled);
  await writer.close().catch(broken("sink-gone"));
}

/** Begins with the head: its own buffer where that is large enough, since a copy would be held beside it. */
function bufferFor(head: Uint8Array | undefined, size: number): Uint8Array {
  if (head !== undefined && head.byteOffset === 0 && head.buffer.byteLength >= size) return new Uint8Array(head.buffer);
  const bytes = new Uint8Array(Math.max(size, 2 * (head?.length ?? 0)));
  if (head !== undefined) bytes.set(head);
  return bytes;
}
