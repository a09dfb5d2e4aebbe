// The calls of a payer's meter that the relay makes, and their types.
import type { JobState } from "../../contract/states.ts";
import type { ErrorCode } from "../../errors.ts";
import type { Kind } from "../../models/model.ts";
import type { Rule } from "../operator-settings/rules.ts";
import type { GalleryRow } from "./gallery-calls.ts";

/** The upstream took the admission's job, and calls it so. */
export interface Binding {
  readonly admission: string;
  readonly upstreamId: string;
}

/** Which plan a caller claims, and what says so. The operator's override in the meter wins. */
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
  /** Checked against the operator's revocations, which the meter knows before the isolates do. */
  readonly bearer: Bearer;
  readonly model: string;
  readonly kind: Kind | undefined;
  /** `network`: an address's meter asks the meter of its /48. */
  readonly operation: "run" | "runsync" | "retry" | "openai" | "lb" | "network";
  /** Micro-USD: a safe integer, not negative. */
  readonly reserveMicroUsd: number;
  /** The size of the whole request body, for the price of handed-out text. */
  readonly inputBytes: number;
  /** The upstream was given a hook URL. If no notice ever comes, it never had the job. */
  readonly hasNotice: boolean;
  /** It shares another admission's job, which pays: it counts as a request, takes no place and is charged nothing. */
  readonly joined?: boolean;
  /** The job that this admission runs again. */
  readonly retryOf?: Binding;
  /**
   * How long the job may live, and how long the upstream keeps its result. From these the meter knows when it must ask
   * by itself.
   */
  readonly ttlMs: number;
  readonly retentionMs: number;
  /** The client's own webhook, delivered by the meter's outbox. */
  readonly webhook: string | undefined;
  /** The job's input as JSON, which the webhook is to carry. */
  readonly webhookInput?: string | undefined;
  readonly idempotency: { readonly key: string; readonly fingerprint: string } | undefined;
  /**
   * Ids and ends of the payer's earlier jobs that go along with this call. They are noted even if the request is
   * refused.
   */
  readonly binds?: readonly (Binding | Ending)[];
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
  /** Null if the call ended without an id: an `openai/` call, or one that was assumed to be lost. */
  readonly upstreamId: string | null;
  /** Of a body that was too large for a fingerprint. */
  readonly digest?: string;
  /** When an `openai/` call ended, where that is known, and still known. */
  readonly endedAt?: number;
}

/** What an answer of the upstream says of a job: how it ended, or that it goes on. */
export interface Ending {
  readonly admission: string;
  /** A retry runs the same upstream job again: what settles is the newest admission of the chain. */
  readonly upstreamId: string | null;
  readonly status: JobState;
  /** What the answer says it cost; null where it says nothing true: then the reservation counts. */
  readonly costMicroUsd: number | null;
  /**
   * The worth of the handed-out text, for an answer without a cost. It is charged as assumed, at most the reservation.
   */
  readonly assumedMicroUsd?: number;
  /** The moment before the upstream was asked: an answer to an earlier question says nothing of a later retry. */
  readonly askedAt: number;
  readonly seenAt: number;
  /** min(`seenAt`, admission + `delayTime` + `executionTime`): the job may have ended long before its end was seen. */
  readonly completedAt: number;
  /**
   * Only a notice says that this upstream id is the admission's job. The end stays assumed until the relay tells the
   * same id.
   */
  readonly isUnproven?: boolean;
  /** A notice told of the end, and the owner has not seen it yet. */
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

export interface Settled {
  /** The admission that was meant: the newest of the chain. `notify` names it. */
  readonly admission: string;
  /** False where the admission was settled before, is unknown, or is not at its end. */
  readonly first: boolean;
  readonly chargedMicroUsd: number;
  /** No answer stated the cost: one that does corrects the charge. */
  readonly isAssumed: boolean;
  /**
   * The job has ended so, also if only assumed: telling the same end again changes nothing. False for an end
   * that is not the retry's, or may not be: it was asked for before the retry was accepted, or by a clock near to that.
   */
  readonly isOver: boolean;
  /** The client's webhook is still without the body to deliver: `notify` brings it. */
  readonly wantsNotice: boolean;
}

/** A job in its owner's list. */
export interface MeteredJob {
  readonly admission: string;
  readonly owner: string;
  /** Null too where only a notice has told it. */
  readonly upstreamId: string | null;
  readonly model: string;
  readonly status: JobState;
  readonly reservedMicroUsd: number;
  readonly inputBytes: number;
  readonly costMicroUsd: number | null;
  /** The charge is assumed: no answer stated the cost. */
  readonly isAssumed: boolean;
  /** Only a notice has told its upstream id. */
  readonly isGuessed: boolean;
  readonly admittedAt: number;
  readonly endedAt: number | null;
}

/** What a meter knows of the end of a job that the upstream has forgotten. */
export interface KnownEnd {
  /** Its answer, where KV has not taken that yet. */
  readonly owed: Uint8Array | undefined;
  /** How it ended; undefined while the books know of no end. */
  readonly status: JobState | undefined;
  /** The last of the job and its retries; undefined where its row is gone. */
  readonly newest: string | undefined;
}

/** The calls of `UserMeter` that the relay makes. All but `admit` and `amend` may be repeated when their answer was lost. */
export interface Metering {
  /** A promise where another object must be asked first: the app's budget, or the meter of the caller's /48. */
  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer>;
  /** A refusal does not end the admission: the caller cuts the upload off and releases it. */
  amend(admission: string, amendment: Amendment): AdmitAnswer | Promise<AdmitAnswer>;
  bind(binds: readonly (Binding | Ending)[]): void;
  /** The upstream never had it: reservation, place and idempotency key are free again. May overtake its `admit`. */
  release(admission: string): void;
  /**
   * It is unknown whether the upstream has the job. Its place is freed at once and its money in a minute, unless a
   * notice or an answer tells more.
   */
  doubt(admission: string): void;
  /** `binds` as those of `admit`. A status that is not final is noted. */
  settle(ending: Ending, binds?: readonly (Binding | Ending)[]): Settled;
  handOut(admission: string, handed: HandedOut): void;
  /** The final answer as the owner sees it, for the client's webhook. */
  notify(admission: string, body: string): void;
  /**
   * A notice came, but the job's status does not show an end yet: the alarm asks again soon, several times. The notice
   * may tell the upstream's id.
   */
  lookAgain(binding: Binding): void;
  /**
   * Counts an answer from the cache under the rules for requests, and lists its link in the owner's gallery. An
   * idempotency key may stand for an earlier call.
   */
  countHit(hit: Hit): HitAnswer;
  /**
   * What is known of a job's last end. The first of the names is the admission. An answer may be owed under any of them, or
   * under the name of the last retry.
   */
  lastWord(names: readonly string[]): KnownEnd;
  /** A retry reserves what the job's earlier admission reserved. */
  job(admission: string): MeteredJob | undefined;
  /** The owner's jobs that are not at their end, newest first; those that were seen running come last. */
  openJobs(owner: string, model: string, count: number): MeteredJob[];
  /** A link that no job of the owner's ended with. */
  addToGallery(owner: string, row: GalleryRow): void;
  /** The owner's jobs, newest first. */
  jobs(owner: string, model: string | undefined, offset: number, count: number): { jobs: MeteredJob[]; total: number };
}
