// Copies a streaming JSON text to a carrier, whole or only the value of one member, and tells where its top-level
// members lie.
import type { ByteSource } from "./byte-reader.ts";
import { type JsonListener, type Kind, SKIM, WATCH } from "./json-listener.ts";
import { type RelayFault, relayJson } from "./json-relay.ts";
import { Names, parsed } from "./names.ts";

/** Positions count from the beginning of the body. */
export interface Member {
  readonly kind: Kind;
  readonly from: number;
  readonly to: number;
  /** There where it was asked for. */
  readonly value?: unknown;
}
/** If a name is repeated, the last member counts, as in JSON.parse. */
export type Members = ReadonlyMap<string, Member>;

/** Takes what is carried on. Where a name is repeated it begins anew: the last value counts. */
export interface Carrier {
  begin(): Promise<void>;
  write(bytes: Uint8Array): Promise<void>;
}

export interface MemberScan {
  readonly source: ReadableStream<Uint8Array> | ByteSource;
  readonly length: number | undefined;
  readonly limitBytes: number;
  /** Members to tell of; those in `read` with their values. */
  readonly members: readonly string[];
  readonly read: readonly string[];
  /** Of these, those that are carried on as `null`. */
  readonly withheld?: readonly string[];
  /** The member whose value is carried on; the whole text where it is undefined. */
  readonly carry: string | undefined;
  readonly carrier: Carrier;
  /** Asked when the text is whole. What it throws refuses the text, and is thrown again. */
  accept(root: Member, members: Members): void;
}

export type MemberFault = Exclude<RelayFault, "stopped"> | "member-too-large";

/** A member that is read may take as much. */
const readBytes = 128 * 1024;

/** The fault, or undefined when all was carried on. */
export async function scanMembers(scan: MemberScan): Promise<MemberFault | undefined> {
  const listener = new MemberListener(scan);
  let refusal: { thrown: unknown } | undefined;
  const fault = await relayJson({
    source: scan.source,
    length: scan.length,
    limitBytes: scan.limitBytes,
    edits: [],
    // Others read it beside texts of others, which one that is none would spoil.
    toTheLetter: true,
    output: outlet(listener.spans, scan.carrier),
    listener,
    stopped: () => listener.tooLarge,
    accept: () => {
      try {
        if (listener.root) scan.accept(listener.root, listener.members);
        return true;
      } catch (thrown) {
        refusal = { thrown };
        return false;
      }
    },
  });
  if (refusal) throw refusal.thrown;
  return fault === "stopped" ? "member-too-large" : fault;
}

interface Span {
  readonly from: number;
  /** Infinite while its end has not come. */
  to: number;
}

class MemberListener implements JsonListener {
  readonly members = new Map<string, Member>();
  readonly spans: Span[] = [];
  root: Member | undefined;
  tooLarge = false;
  /** How much of the body has left the buffer. */
  #gone = 0;
  readonly #scan: MemberScan;
  readonly #names: Names;
  #name: string | undefined;
  #rootFrom = 0;
  #from = 0;

  constructor(scan: MemberScan) {
    this.#scan = scan;
    this.#names = new Names(scan.members);
  }

  shifted(count: number): void {
    this.#gone += count;
  }

  key(_depth: number, bytes: Uint8Array, start: number, end: number): void {
    this.#name = this.#names.find(bytes, start, end);
  }

  value(depth: number, kind: Kind, at: number): number {
    const from = this.#gone + at;
    const carried = depth === 0 ? this.#scan.carry === undefined : this.#name === this.#scan.carry;
    if (carried && (depth === 0 || this.#name !== undefined)) {
      this.spans.push({ from, to: Number.POSITIVE_INFINITY });
    }
    if (depth === 0) {
      this.#rootFrom = from;
      return kind === "object" ? WATCH : SKIM;
    }
    this.#from = from;
    return this.#name !== undefined && this.#scan.read.includes(this.#name) ? readBytes : SKIM;
  }

  end(depth: number, kind: Kind, bytes: Uint8Array, start: number, end: number, size: number): void {
    const from = depth === 0 ? this.#rootFrom : this.#from;
    const to = from + size;
    const span = this.spans.at(-1);
    if (span?.from === from) span.to = to;
    if (depth === 0) this.root = { kind, from, to };
    else if (this.#name !== undefined) {
      const read = this.#scan.read.includes(this.#name);
      if (read && start < 0) this.tooLarge = true;
      else this.members.set(this.#name, { kind, from, to, ...(read && { value: parsed(bytes, start, end) }) });
      if (read && this.#scan.withheld?.includes(this.#name)) writeNull(bytes, start, end);
    }
  }
}

/** In place of a value, with as many bytes; what is shorter says nothing. */
function writeNull(bytes: Uint8Array, start: number, end: number): void {
  if (start < 0 || end - start < nullBytes.length) return;
  bytes.fill(blank, start, end);
  bytes.set(nullBytes, start);
}
const nullBytes = new TextEncoder().encode("null");
const blank = 0x20;

/** Lets through what lies in the spans. They come in order, each before its first byte. */
function outlet(spans: readonly Span[], carrier: Carrier): WritableStream<Uint8Array> {
  let at = 0;
  let current = 0;
  let begun = false;
  return new WritableStream({
    async write(chunk) {
      const from = at;
      at += chunk.byteLength;
      for (let span = spans[current]; span && span.from < at; span = spans[current]) {
        if (!begun) await carrier.begin();
        begun = true;
        const piece = chunk.subarray(Math.max(0, span.from - from), Math.min(chunk.byteLength, span.to - from));
        if (piece.byteLength > 0) await carrier.write(piece);
        if (span.to > at) return;
        current += 1;
        begun = false;
      }
    },
  });
}
