// What the relay asks of a payer's meter, and what it is told: the words that both sides share.
import type { JobState } from "../../contract/states.ts";
import type { ErrorCode } from "../../errors.ts";
import type { Kind } from "../../models/model.ts";
import type { Rule } from "../rules.ts";

/** The upstream took the admission's job, and calls it so. */
export interface Binding {
  readonly admission: string;
  readonly upstreamId: string;
}

/** Which plan a caller comes with, and who says so; the operator's override in the meter goes before it. */
export interface PlanClaim {
  readonly plan: string;
  readonly planFrom: "token" | "session" | "default";
}

/** Which rules count for a caller: what its token claims, and what the token narrows. */
export interface Claims extends PlanClaim {
  /** The plans that are not built in, by name, in JSON. */
  readonly plans: string;
  /** The token's own narrowing, counted per token. */
  readonly token:
    | { readonly id: string; readonly rules: readonly Rule[]; readonly maxCostMicroUsd?: number }
    | undefined;
}

/** What a caller's requests are admitted under. */
export interface Terms extends Claims {
  /** Whether the app has a ceiling: without one BUDGET is reported to, and not asked. */
  readonly hasCeiling: boolean;
  /** An anonymous IPv6 caller's /48, whose meter has ten times the limits of the /64's. */
  readonly network?: string;
}

/** Asked before the relay: the meter answers in one turn, and what it counts is all or nothing. */
export interface AdmitRequest extends Terms {
  readonly admission: string;
  readonly owner: string;
  /** What the operator's revocations are held against, at once and not only within 20 s. */
  readonly bearer: Bearer;
  readonly model: string;
  readonly kind: Kind | undefined;
  /** `network`: an address's meter asks the meter of its /48. */
  readonly operation: "run" | "runsync" | "retry" | "openai" | "network";
  /** Micro-USD: a safe integer, not negative. */
  readonly reserveMicroUsd: number;
  /** Of the whole body as it was sent: what text that is handed out costs is reckoned from it. */
  readonly inputBytes: number;
  /** The upstream was given an address to tell of the job's end: where it stays silent, it never had the job. */
  readonly hasNotice: boolean;
  /** It shares another admission's job, which pays: it counts as a request, takes no place and is charged nothing. */
  readonly joined?: boolean;
  /** The job that this admission runs again. */
  readonly retryOf?: Binding;
  /** How long the job may live, and how long the upstream keeps its result: when the meter must ask by itself. */
  readonly ttlMs: number;
  readonly retentionMs: number;
  /** The client's own webhook, delivered by the meter's outbox. */
  readonly webhook: string | undefined;
  readonly idempotency: { readonly key: string; readonly fingerprint: string } | undefined;
  /** The payer's earlier jobs that are bound by the same call, also where the request is refused. */
  readonly binds?: readonly Binding[];
}

export interface Bearer {
  readonly issuedAt: number;
  readonly tokenId: string | undefined;
}

/** What a large body turned out to ask for, told before its last byte is sent. */
export interface Amendment {
  readonly terms: Terms;
  /** Instead of what was reserved at the admission. */
  readonly reserveMicroUsd: number;
  readonly inputBytes: number;
  readonly ttlMs?: number | undefined;
  readonly webhook?: string | undefined;
  /** Of the whole body: what its idempotency key stands for. */
  readonly digest?: string | undefined;
}

/** Ready to be set as headers: `RateLimit-Policy` and `RateLimit`. */
export interface QuotaHeaders {
  readonly policy: string;
  readonly limit: string;
}

export type AdmitAnswer =
  | { readonly admitted: true; readonly quota: QuotaHeaders }
  /** The same key and body were admitted before: this is that job. */
  | { readonly admitted: false; readonly replay: Replay }
  | Refusal;

export interface Refusal {
  readonly admitted: false;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly retryAfterSeconds?: number;
  readonly quota?: QuotaHeaders;
}

/** The admission that an idempotency key stands for. */
export interface Replay {
  readonly admission: string;
  /** Null where it ended and nobody ever learned of an id: an `openai/` call, or one that was assumed to be lost. */
  readonly upstreamId: string | null;
  /** Of a body that was too large for a fingerprint. */
  readonly digest?: string;
}

/** What somebody saw of a job: how it ended, or that it goes on. */
export interface Ending {
  readonly admission: string;
  /** A retry runs the same upstream job again: what settles is the newest admission of the chain. */
  readonly upstreamId: string | null;
  readonly status: JobState;
  /** What the answer says it cost; null where it says nothing true: then the reservation counts. */
  readonly costMicroUsd: number | null;
  /** Where nobody said the cost: what was handed out is worth so much. It is charged as assumed, at most the reservation. */
  readonly assumedMicroUsd?: number;
  /** The moment before the upstream was asked: an answer to an earlier question says nothing of a later retry. */
  readonly askedAt: number;
  readonly seenAt: number;
  /** Decision 5: min(when seen, admitted + delayTime + executionTime). */
  readonly completedAt: number;
  /** A notice alone says that the job with this id is the admission's: the end is assumed until the relay says so too. */
  readonly isUnproven?: boolean;
  /** A notice told of it, and nobody has told its owner yet. */
  readonly isUntold?: boolean;
  /** The links that its media is kept under. */
  readonly media?: readonly { readonly key: string; readonly media: Omit<GalleryRow, "key"> }[] | undefined;
}

/** Text that left for the caller, or is about to leave. */
export interface HandedOut {
  readonly upstreamId: string | null;
  /** Chunks or events. */
  readonly pieces: number;
  readonly textBytes: number;
  /** All of the output so far, as a status says it; else what came on top of what was told before. */
  readonly whole: boolean;
}

/** An answer from the cache that its owner has not had before. */
export interface Hit extends Terms {
  readonly owner: string;
  readonly bearer: Bearer;
  readonly model: string;
  readonly kind: Kind | undefined;
  /** Told twice, its key counts once. */
  readonly row: GalleryRow;
  /** The caller's idempotency key, which stands for this hit from now on. */
  readonly named?: NamedHit;
}

/** Its owner deleted the link, though KV may not tell of that everywhere yet. */
export type HitAnswer = AdmitAnswer | "removed";

export interface NamedHit extends NonNullable<AdmitRequest["idempotency"]> {
  readonly admission: string;
  readonly upstreamId: string;
  /** Its link is its owner's already: the key alone is new. */
  readonly isListed: boolean;
}

/** A link in its owner's gallery. */
export interface GalleryRow {
  readonly key: string;
  readonly field: string;
  readonly model: string;
  readonly cost: number | null;
  readonly size: number | null;
  readonly completedAt: number;
  readonly expiresAt: number;
}

export interface GalleryCursor {
  readonly completedAt: number;
  readonly key: string;
}

/** The calls that the gallery makes. */
export interface GalleryCalls {
  /** Newest first. */
  gallery(owner: string, before: GalleryCursor | undefined, count: number): GalleryRow[];
  removeFromGallery(owner: string, key: string): void;
}

export interface Settled {
  /** The admission that was meant: the newest of the chain. `notify` names it. */
  readonly admission: string;
  /** False where the admission was settled before, is unknown, or is not at its end. */
  readonly first: boolean;
  readonly chargedMicroUsd: number;
  /** Nobody has said what it cost: a later truth still corrects it. */
  readonly isAssumed: boolean;
  /** Its end is known, or nobody knows it: telling the same again changes nothing. */
  readonly isOver: boolean;
  /** The client's webhook is still without the body to deliver: `notify` brings it. */
  readonly wantsNotice: boolean;
}

/** A job as its owner's list has it. */
export interface MeteredJob {
  readonly admission: string;
  readonly owner: string;
  readonly upstreamId: string | null;
  readonly model: string;
  readonly status: JobState;
  readonly reservedMicroUsd: number;
  readonly inputBytes: number;
  readonly costMicroUsd: number | null;
  /** The charge is what nobody has said. */
  readonly isAssumed: boolean;
  /** A notice alone named its id. */
  readonly isGuessed: boolean;
  readonly admittedAt: number;
  readonly endedAt: number | null;
}

/** What the meter asks about a job that nobody follows; `body` is the final answer as its owner sees it. */
export type AskUpstream = (job: AskedJob, large?: LargeAnswers) => Promise<UpstreamAnswer>;

/** What becomes of an answer that is too large to hold. */
export interface LargeAnswers {
  /** Waited for before it is read on. */
  turn(): Promise<void>;
  /**
   * Takes the text as its owner gets it, and reads it to its end in any case. False where it breaks off or is too large.
   * Undefined where nothing of it may be kept.
   */
  readonly keep: ((text: ReadableStream<Uint8Array>) => Promise<boolean>) | undefined;
}

export interface AskedJob {
  readonly model: string;
  readonly upstreamId: string;
  readonly owner: string;
  readonly admission: string;
  /** The first of its chain, by which its owner knows the job. */
  readonly first: string;
}

/** An end as its owner is told it where nobody has the answer that said it. */
export type DescribeEnd = (job: AskedJob, status: JobState) => string;

export type UpstreamAnswer =
  | {
      readonly status: JobState;
      readonly costMicroUsd: number | null;
      readonly completedAt: number;
      readonly media?: Ending["media"];
      /** As its owner gets it. */
      readonly body?: string;
      /** It was too large to hold, and `LargeAnswers.keep` took it. */
      readonly isTaken?: boolean;
    }
  /** The upstream does not know the job, or knows it no more. */
  | "unknown"
  | "unreachable";

/** The calls of `UserMeter` that the relay makes. All but `admit` and `amend` may be repeated when their answer was lost. */
export interface Metering {
  /** A promise where another object must be asked first: the app's budget, or the meter of the caller's /48. */
  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer>;
  /** A refusal leaves the admission as it was: the caller cuts the upload, and releases. */
  amend(admission: string, amendment: Amendment): AdmitAnswer | Promise<AdmitAnswer>;
  bind(binds: readonly Binding[]): void;
  /** The upstream never had it: reservation, place and idempotency key are free again. May overtake its `admit`. */
  release(admission: string): void;
  /** Nobody knows whether the upstream has it: the place is free at once, the money in a minute, until somebody learns more. */
  doubt(admission: string): void;
  /** `binds` as those of `admit`. A status that is not final is noted. */
  settle(ending: Ending, binds?: readonly Binding[]): Settled;
  handOut(admission: string, handed: HandedOut): void;
  /** The final answer as the owner sees it, for the client's webhook. */
  notify(admission: string, body: string): void;
  /** The upstream told of the job, and yet does not say its end: the alarm asks again after 2, 10 and 30 s. It may give an id. */
  lookAgain(binding: Binding): void;
  /** Counts as a request, under every rule for requests, and puts the link into the owner's gallery. A key may stand for an earlier call. */
  countHit(hit: Hit): HitAnswer;
  /** The end of a job that the upstream has forgotten: its answer, where KV has not taken that yet, or how it ended for nothing. It is kept under one of its names. */
  lastWord(names: readonly string[]): string | Uint8Array | undefined;
  /** A retry reserves what the job's earlier admission reserved. */
  job(admission: string): MeteredJob | undefined;
  /** The owner's jobs that are not at their end, oldest first. */
  openJobs(owner: string, model: string, count: number): MeteredJob[];
  /** A link that no job of the owner's ended with. */
  addToGallery(owner: string, row: GalleryRow): void;
  /** The owner's jobs, newest first. */
  jobs(owner: string, model: string | undefined, offset: number, count: number): { jobs: MeteredJob[]; total: number };
}
