// Streams a large job request upstream: our webhook goes in, the client's out; the last byte waits for the verdict.
import { type Kind, SKIM, WATCH } from "./json-listener.ts";
import type { Edit } from "./json-relay.ts";
import { Names, parsed, repeatsName, unquote } from "./names.ts";
import { type Outcome, relayForVerdict, type Summarizing, type VerdictScan } from "./verdict-relay.ts";
import { isWebhookName } from "./webhook-name.ts";

/** What `policy`, `webhook` and `s3Config` may take each; they are read whole. */
const WHOLE_BYTES = 16 * 1024;
/** What a member of `input` may take to be read, and all of them together; beyond, only kind and size are told. */
const SMALL_BYTES = 4 * 1024;
const SMALL_TOTAL_BYTES = 64 * 1024;
/** How many members are read, repeated ones too. It bounds what a body made of keys alone can cost. */
const MAX_MEMBERS = 4096;

const OUTER = new Names(["input", "policy", "webhook", "s3Config"]);
type Outer = "policy" | "webhook" | "s3Config";

/** A member of `input`. `value` is there when it was small enough to read (JSON has no undefined). */
export interface Member {
  readonly kind: Kind;
  readonly bytes: number;
  readonly value?: unknown;
}

/** What the request says, as JSON.parse would have it: of members with one name, the last. */
export interface RequestSummary {
  readonly input: ReadonlyMap<string, Member>;
  /** `input`, or a member of it, is written twice. Parsers disagree on which one counts. */
  readonly isRepeated?: boolean;
  readonly policy?: unknown;
  readonly webhook?: unknown;
  readonly s3Config?: unknown;
}

export type ShapeFault = "no-input" | "member-too-large" | "too-many-members";
export type RequestOutcome<Refusal> = Outcome<RequestSummary, ShapeFault, Refusal>;

export interface RequestScan<Refusal> extends VerdictScan<RequestSummary, Refusal> {
  /** Members to put before the client's, each with its comma: `"webhook":"https://…",`. */
  readonly inject: Uint8Array;
}

/**
 * `stream` is the upstream request's body; it must be read or cancelled. `done` resolves once the body was sent whole,
 * or cut off; it rejects only with what `verdict` itself threw. `sink-gone` means that the upstream stopped reading:
 * its answer, if there is one, tells why.
 */
export function scanRequest<Refusal>(scan: RequestScan<Refusal>): {
  readonly stream: ReadableStream<Uint8Array>;
  readonly done: Promise<RequestOutcome<Refusal>>;
} {
  const { readable, writable } =
    scan.length === undefined ? new IdentityTransformStream() : new FixedLengthStream(scan.length + scan.inject.length);
  return { stream: readable, done: relayForVerdict(scan, writable, new JobRequest(scan.inject)) };
}

/** Some services read names whatever their case: to them "Webhook" would take the place of ours. */
function isLikeWebhook(bytes: Uint8Array, start: number, end: number): boolean {
  return start >= 0 && end - start <= longestWebhook && isWebhookName(unquote(bytes, start, end));
}
/** Each letter as an escape. */
const longestWebhook = 6 * "webhook".length;

/** The listener: depth 0 is the request, 1 its members, 2 those of `input`. */
class JobRequest implements Summarizing<RequestSummary, ShapeFault> {
  fault: ShapeFault | undefined;
  readonly edits: Edit[] = [];
  readonly #inject: Uint8Array;
  #outer: string | undefined;
  #inner: string | undefined;
  #input: Map<string, Member> | undefined;
  readonly #whole = new Map<Outer, unknown>();
  #smallBytes = 0;
  #members = 0;
  #inputs = 0;
  #isRepeated = false;

  constructor(inject: Uint8Array) {
    this.#inject = inject;
  }

  key(depth: number, bytes: Uint8Array, start: number, end: number): void {
    if (depth === 1) {
      this.#outer = OUTER.find(bytes, start, end);
      // `k` becomes `l`, also where it ends an escape (`\u006b`): "webhool" means nothing to anyone, and is as long.
      if (this.#outer === "webhook" || isLikeWebhook(bytes, start, end))
        bytes[end - 1] = (bytes[end - 1] as number) + 1;
    } else if (++this.#members > MAX_MEMBERS) {
      this.fault = "too-many-members";
    } else {
      this.#inner = start < 0 ? undefined : unquote(bytes, start, end);
    }
  }

  value(depth: number, kind: Kind, at: number): number {
    if (this.fault !== undefined) return SKIM;
    if (depth === 0) {
      if (kind === "object") {
        if (this.#inject.length > 0) this.edits.push({ from: at + 1, to: at + 1, bytes: this.#inject });
        return WATCH;
      }
      this.fault = "no-input";
    } else if (depth === 1 && this.#outer === "input") {
      // The last `input` counts, so what an earlier one said is forgotten.
      this.#smallBytes = 0;
      this.#isRepeated ||= ++this.#inputs > 1;
      this.#input = kind === "object" ? new Map() : undefined;
      if (kind === "object") return WATCH;
    } else if (depth === 1 && this.#outer !== undefined) {
      return WHOLE_BYTES;
    } else if (depth === 2 && this.#inner !== undefined) {
      return SMALL_BYTES;
    }
    return SKIM;
  }

  end(depth: number, kind: Kind, bytes: Uint8Array, start: number, end: number, size: number): void {
    if (this.fault !== undefined) return;
    if (depth === 0) {
      if (this.#input === undefined) this.fault = "no-input";
    } else if (depth === 1) {
      const name = this.#outer;
      if (name !== "policy" && name !== "webhook" && name !== "s3Config") return;
      if (start < 0) this.fault = "member-too-large";
      else if (++this.#members > MAX_MEMBERS) this.fault = "too-many-members";
      else this.#whole.set(name, parsed(bytes, start, end));
    } else if (this.#inner !== undefined) {
      this.#remember(this.#inner, kind, bytes, start, end, size);
    }
  }

  #remember(name: string, kind: Kind, bytes: Uint8Array, start: number, end: number, size: number): void {
    const before = this.#input?.get(name);
    if (before !== undefined) this.#isRepeated = true;
    if (before !== undefined && "value" in before) this.#smallBytes -= before.bytes;
    const small = start >= 0 && this.#smallBytes + size <= SMALL_TOTAL_BYTES;
    if (!small) {
      this.#input?.set(name, { kind, bytes: size });
      return;
    }
    this.#smallBytes += size;
    const value = parsed(bytes, start, end);
    this.#isRepeated ||= repeatsName(value, bytes, start, end);
    this.#input?.set(name, { kind, bytes: size, value });
  }

  summary(): RequestSummary {
    const repeated = this.#isRepeated ? { isRepeated: true } : {};
    return { input: this.#input ?? new Map(), ...repeated, ...Object.fromEntries(this.#whole) };
  }
}
