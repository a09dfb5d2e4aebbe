// Streams a large JSON object upstream, reads those of its members that are small, and may put others behind them.
import { type Kind, SKIM, WATCH } from "./json-listener.ts";
import type { Edit } from "./json-relay.ts";
import { parsed, repeatsName, unquote } from "./names.ts";
import { type Outcome, relayForVerdict, type Summarizing, type VerdictScan } from "./verdict-relay.ts";

/** What a member may take to be read. */
const SMALL_BYTES = 4 * 1024;
/** What the small ones may take together, and how many there may be: they are held until the body's end. */
const SMALL_TOTAL_BYTES = 64 * 1024;
const MAX_MEMBERS = 1024;

/** `value` is there when the member was small enough to read (JSON has no undefined). */
export interface ObjectMember {
  readonly kind: Kind;
  readonly value?: unknown;
}
export interface ObjectSummary {
  readonly members: ReadonlyMap<string, ObjectMember>;
  /** Of the object as it was written. */
  readonly bytes: number;
}

/** `repeated`: which of two members of one name counts, parsers do not agree on. */
export type ObjectFault = "no-object" | "too-many-members" | "repeated";

export interface ObjectScan<Refusal> extends VerdictScan<ObjectSummary, Refusal> {
  readonly tail?: Tail | undefined;
}

/** A member to put in front of the closing brace. */
export interface Tail {
  /** A member of this name that the caller wrote is renamed, so that no parser has to choose between the two. */
  readonly name: string;
  /**
   * Exactly this many bytes are added, since Content-Length is sent already: a shorter member is padded with blanks.
   */
  readonly length: number;
  /** Asked when all members have passed: `,"name":true`, or undefined for none. */
  member(summary: ObjectSummary): Uint8Array | undefined;
}

/** `stream` is the upstream request's body; it must be read or cancelled. `done` resolves once it was sent, or cut off. */
export function scanObject<Refusal>(scan: ObjectScan<Refusal>): {
  readonly stream: ReadableStream<Uint8Array>;
  readonly done: Promise<Outcome<ObjectSummary, ObjectFault, Refusal>>;
} {
  const { length, tail } = scan;
  const { readable, writable } =
    length === undefined ? new IdentityTransformStream() : new FixedLengthStream(length + (tail?.length ?? 0));
  return { stream: readable, done: relayForVerdict(scan, writable, new MemberReader(tail)) };
}

const BLANK = 0x20;
const UNDERSCORE = 0x5f;

class MemberReader implements Summarizing<ObjectSummary, ObjectFault> {
  fault: ObjectFault | undefined;
  readonly edits: Edit[] = [];
  readonly #tail: Tail | undefined;
  readonly #members = new Map<string, ObjectMember>();
  #name: string | undefined;
  #smallBytes = 0;
  #bytes = 0;

  constructor(tail: Tail | undefined) {
    this.#tail = tail;
  }

  key(_depth: number, bytes: Uint8Array, start: number, end: number): void {
    this.#name = start < 0 ? undefined : unquote(bytes, start, end);
    if (this.#name !== undefined && this.#members.has(this.#name)) this.fault ??= "repeated";
    if (this.#members.size >= MAX_MEMBERS) this.fault ??= "too-many-members";
    if (this.#tail && this.#name === this.#tail.name) bytes.fill(UNDERSCORE, start, end);
  }

  value(depth: number, kind: Kind): number {
    if (depth > 0) return this.#name === undefined ? SKIM : SMALL_BYTES;
    if (kind === "object") return WATCH;
    this.fault ??= "no-object";
    return SKIM;
  }

  end(depth: number, kind: Kind, bytes: Uint8Array, start: number, end: number, size: number): void {
    if (depth === 0) this.#ended(size, end - 1);
    if (depth === 0 || this.#name === undefined || this.fault !== undefined) return;
    if (start < 0) {
      this.#members.set(this.#name, { kind });
      return;
    }
    this.#smallBytes += size;
    const value = parsed(bytes, start, end);
    if (this.#smallBytes > SMALL_TOTAL_BYTES) this.fault = "too-many-members";
    else if (repeatsName(value, bytes, start, end)) this.fault = "repeated";
    else this.#members.set(this.#name, { kind, value });
  }

  #ended(size: number, brace: number): void {
    this.#bytes = size;
    if (!this.#tail || this.fault !== undefined) return;
    const bytes = new Uint8Array(this.#tail.length).fill(BLANK);
    bytes.set(this.#tail.member(this.summary()) ?? []);
    this.edits.push({ from: brace, to: brace, bytes });
  }

  summary(): ObjectSummary {
    return { members: this.#members, bytes: this.#bytes };
  }
}
