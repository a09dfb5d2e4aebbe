// Streams a large answer to the client. On the way its `id` is replaced, `webhook` and `input` are taken out, and the
// facts about the job (`status`, `output.cost`, …) are read.
import type { ByteSource } from "./byte-reader.ts";
import { type JsonListener, type Kind, SKIM, WATCH } from "./json-listener.ts";
import { type Edit, type Forbidden, type RelayFault, relayJson } from "./json-relay.ts";
import { Names, parsed, unquote } from "./names.ts";

/** A longer string is not read as an id or URL (`data:` URLs are longer). */
const STRING_BYTES = 8 * 1024;
const FACT_BYTES = 256;

/** Of the request, not of the job: the webhook is the gateway's own. */
const TAKEN_OUT = ["webhook", "input"];
const FACTS = new Names(["id", "status", "delayTime", "executionTime", "output", ...TAKEN_OUT]);
/** The facts that are read inside `output`. If a second `output` follows, they are forgotten: the last one counts. */
const OF_OUTPUT = ["cost", "size", "media"] as const;
const NUMBERS = ["cost", "size"] as const satisfies (keyof AnswerFacts)[];
const encoder = new TextEncoder();
const nothing = new Uint8Array();

/**
 * What the answer has said of its job so far. If a name is repeated, the last value counts; one of a wrong type counts
 * as missing.
 */
export interface AnswerFacts {
  id?: string;
  status?: string;
  delayTime?: number;
  executionTime?: number;
  /** `output.cost`, or `output[0].cost`. */
  cost?: number;
  /** `output.size`. */
  size?: number;
  /** The strings of `output` that may be a media URL, by their members' names. */
  media?: Readonly<Record<string, string>>;
}

export interface AnswerScan {
  readonly source: ReadableStream<Uint8Array> | ByteSource;
  readonly limitBytes: number;
  /** The members of `output` that may hold a media URL. */
  readonly mediaKeys: Iterable<string>;
  readonly bufferBytes?: number | undefined;
  readonly forbidden?: Forbidden | undefined;
  /** The new id, undefined to leave it. A rejection cuts the answer off. */
  replaceId(id: string): string | undefined | Promise<string | undefined>;
  /** Called when the answer is whole: its last byte waits. A rejection cuts the answer off. */
  conclude?(facts: Readonly<AnswerFacts>): void | Promise<void>;
}

export type AnswerOutcome = { readonly facts: AnswerFacts; readonly fault?: RelayFault };

/**
 * `stream` is the client's body; a faulty answer's stream errors before its last byte. `done` resolves, never rejects.
 * With the fault `sink-gone` the client left: the facts are those seen until then.
 */
export function scanAnswer(scan: AnswerScan): {
  readonly stream: ReadableStream<Uint8Array>;
  readonly done: Promise<AnswerOutcome>;
} {
  const { readable, writable } = new IdentityTransformStream();
  const answer = new JobAnswer(scan);
  const relayed = relayJson({
    source: scan.source,
    output: writable,
    listener: answer,
    edits: answer.edits,
    limitBytes: scan.limitBytes,
    bufferBytes: scan.bufferBytes,
    forbidden: scan.forbidden,
    stopped: () => false,
    accept: async () => {
      await scan.conclude?.(answer.facts);
      return true;
    },
  });
  return {
    stream: readable,
    done: relayed.then((fault) => ({ facts: answer.facts, ...(fault === undefined ? {} : { fault }) })),
  };
}

/** The listener: depth 0 is the answer, 1 its members, 2 those of `output`, 3 those of `output[0]`. */
class JobAnswer implements JsonListener {
  readonly facts: AnswerFacts = {};
  readonly edits: Edit[] = [];
  readonly #scan: AnswerScan;
  readonly #mediaKeys: Names;
  #outer: string | undefined;
  #inner: string | undefined;
  /** Which element of an array `output` comes next; -1 where `output` is an object. */
  #element = -1;
  /**
   * The bytes from the last comma on (or from the beginning), until the next member's name says whether it is taken
   * out.
   */
  #pending: Edit | undefined;
  /** The member that is taken out, with the comma before it. For the first member it is the comma after it. */
  #cut: Edit | undefined;
  #isFirst = true;

  constructor(scan: AnswerScan) {
    this.#scan = scan;
    this.#mediaKeys = new Names([...scan.mediaKeys, ...NUMBERS]);
  }

  key(depth: number, bytes: Uint8Array, start: number, end: number): void {
    if (depth === 1) this.#begin(FACTS.find(bytes, start, end));
    else this.#inner = this.#mediaKeys.find(bytes, start, end);
  }

  comma(depth: number, at: number): void {
    if (depth !== 1) return;
    if (this.#cut && this.#isFirst) {
      this.#close(this.#cut, at + 1);
      this.#await(at + 1);
    } else this.#await(at);
  }

  #await(from: number): void {
    this.#pending = { from, to: Number.POSITIVE_INFINITY, bytes: nothing };
    this.edits.push(this.#pending);
  }

  #begin(name: string | undefined): void {
    this.#outer = name;
    if (name !== undefined && TAKEN_OUT.includes(name)) {
      this.#cut = this.#pending;
      if (this.#cut) this.#cut.isCut = true;
    } else {
      this.#isFirst = false;
      this.edits.pop();
    }
    this.#pending = undefined;
  }

  #close(cut: Edit, to: number): void {
    cut.to = to;
    this.#cut = undefined;
  }

  value(depth: number, kind: Kind, at: number): number {
    if (depth === 0) {
      if (kind !== "object") return SKIM;
      this.#await(at + 1);
      return WATCH;
    }
    if (depth === 1) {
      if (this.#outer === undefined || this.#cut) return SKIM;
      if (this.#outer !== "output") return kind === "string" ? STRING_BYTES : FACT_BYTES;
      for (const name of OF_OUTPUT) delete this.facts[name];
      this.#element = kind === "array" ? 0 : -1;
      return kind === "object" || kind === "array" ? WATCH : SKIM;
    }
    if (depth === 2 && this.#element >= 0) return this.#element++ === 0 && kind === "object" ? WATCH : SKIM;
    if (this.#inner === undefined) return SKIM;
    return kind === "string" ? STRING_BYTES : FACT_BYTES;
  }

  end(depth: number, kind: Kind, bytes: Uint8Array, start: number, end: number): void {
    if (depth === 0 || this.#cut) this.#ended(depth, end);
    else if (depth === 1 && this.#outer !== undefined && this.#outer !== "output") this.#told(kind, bytes, start, end);
    else if (depth === 2 && this.#element < 0) this.#produced(kind, bytes, start, end);
    else if (depth === 3 && this.#inner === "cost") this.#counts("cost", kind, bytes, start, end);
  }

  #ended(depth: number, end: number): void {
    // Behind the first member a comma may follow, or the answer's own end.
    if (this.#cut && depth === 1 && !this.#isFirst) this.#close(this.#cut, end);
    if (this.#cut && depth === 0) this.#close(this.#cut, end - 1);
    if (this.#pending && depth === 0) this.edits.pop();
  }

  #told(kind: Kind, bytes: Uint8Array, start: number, end: number): void {
    const { facts } = this;
    const name = this.#outer as Exclude<keyof AnswerFacts, (typeof OF_OUTPUT)[number]>;
    delete facts[name];
    if (start < 0) return;
    if (name === "id" || name === "status") {
      if (kind === "string") facts[name] = unquote(bytes, start + 1, end - 1);
    } else if (kind === "number") facts[name] = Number(parsed(bytes, start, end));
    if (name === "id" && facts.id !== undefined) this.#replace(this.#scan.replaceId(facts.id), start, end);
  }

  #produced(kind: Kind, bytes: Uint8Array, start: number, end: number): void {
    const name = this.#inner;
    if (name === "cost" || name === "size") this.#counts(name, kind, bytes, start, end);
    else if (name !== undefined) this.#leads(name, kind, bytes, start, end);
  }

  #leads(name: string, kind: Kind, bytes: Uint8Array, start: number, end: number): void {
    const { [name]: _, ...others } = this.facts.media ?? {};
    const url = kind === "string" && start >= 0 ? unquote(bytes, start + 1, end - 1) : undefined;
    this.facts.media = url === undefined ? others : { ...others, [name]: url };
  }

  #counts(name: (typeof NUMBERS)[number], kind: Kind, bytes: Uint8Array, start: number, end: number): void {
    delete this.facts[name];
    if (kind === "number" && start >= 0) this.facts[name] = Number(parsed(bytes, start, end));
  }

  #replace(id: string | undefined | Promise<string | undefined>, from: number, to: number): void {
    if (id === undefined) return;
    const bytes = Promise.resolve(id).then((known) =>
      known === undefined ? undefined : encoder.encode(JSON.stringify(known)),
    );
    // It is awaited when its place is written, which a fault may prevent.
    bytes.catch(() => {});
    this.edits.push({ from, to, bytes });
  }
}
