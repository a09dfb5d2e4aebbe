// What the relay asks of a payer's meter, and what it is told: the words that both sides share.
import type { JobState } from "../../contract/states.ts";
import type { ErrorCode } from "../../errors.ts";
import type { Kind } from "../../models/model.ts";
import type { Rule } from "../rules.ts";

/** Which plan a caller comes with, and who says so. */
export interface PlanClaim {
  readonly plan: string;
  readonly planFrom: "token" | "session" | "default";
}

/** Asked before the relay: the meter answers in one turn, and what it counts is all or nothing. */
export interface AdmitRequest extends PlanClaim {
  readonly admission: string;
  readonly owner: string;
  /** What the operator's revocations are held against, at once and not only within 20 s. */
  readonly bearer: { readonly issuedAt: number; readonly tokenId: string | undefined };
  readonly model: string;
  readonly kind: Kind | undefined;
  readonly operation: "run" | "runsync" | "retry" | "openai";
  /** The plans that are not built in, by name, in JSON. */
  readonly plans: string;
  /** The token's own narrowing, counted per token. */
  readonly token:
    | { readonly id: string; readonly rules: readonly Rule[]; readonly maxCostMicroUsd?: number }
    | undefined;
  readonly reserveMicroUsd: number;
  /** It rides on another admission's job, which pays: it counts as a request, takes no place and is charged nothing. */
  readonly joined?: boolean;
  /** How long the job may live, and how long the upstream keeps its result: when the meter must ask by itself. */
  readonly ttlMs: number;
  readonly retentionMs: number;
  /** The client's own webhook, delivered by the meter's outbox. */
  readonly webhook: string | undefined;
  readonly idempotency: { readonly key: string; readonly fingerprint: string } | undefined;
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
  | {
      readonly admitted: false;
      readonly code: ErrorCode;
      readonly detail: string;
      readonly retryAfterSeconds?: number;
      readonly quota?: QuotaHeaders;
    };

/** The job that an idempotency key stands for; the digest of its body where that was too large for a fingerprint. */
export interface Replay {
  readonly admission: string;
  readonly ref: string;
  readonly digest?: string;
}

/** How a job ended, from whoever saw it first. */
export interface Ending {
  readonly admission: string;
  /**
   * The upstream's id. A retry admits anew under the same id, and its owner may follow it by the handle of the first
   * admission: what settles is the newest open admission of this owner's with this ref, else the one named above.
   */
  readonly ref: string | null;
  readonly status: JobState;
  /** What the answer says it cost; null where it says nothing true: then the reservation counts. */
  readonly costMicroUsd: number | null;
  readonly seenAt: number;
  /** Decision 5: min(when seen, admitted + delayTime + executionTime). */
  readonly completedAt: number;
  /** The links that its media is kept under. */
  readonly media?: readonly { readonly key: string; readonly media: Omit<GalleryRow, "key"> }[] | undefined;
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
  /** False where the admission was settled before, or is unknown. */
  readonly first: boolean;
  readonly chargedMicroUsd: number;
  /** The client's webhook is still without the body to deliver: `notify` brings it. */
  readonly wantsNotice: boolean;
}

/** A job as its owner's list has it. */
export interface MeteredJob {
  readonly admission: string;
  readonly owner: string;
  readonly ref: string | null;
  readonly model: string;
  readonly status: JobState;
  readonly reservedMicroUsd: number;
  readonly costMicroUsd: number | null;
  readonly admittedAt: number;
  readonly endedAt: number | null;
}

/** What the meter asks about a job that nobody follows; `body` is the final answer as its owner sees it. */
export type AskUpstream = (job: {
  readonly model: string;
  readonly ref: string;
  readonly owner: string;
  readonly admission: string;
}) => Promise<UpstreamAnswer>;

export type UpstreamAnswer =
  | {
      readonly status: JobState;
      readonly costMicroUsd: number | null;
      readonly completedAt: number;
      readonly media?: Ending["media"];
      readonly body?: string;
    }
  /** The upstream does not know the job, or knows it no more. */
  | "unknown"
  | "unreachable";

/** The calls of `UserMeter` that the relay makes. */
export interface Metering {
  /** A promise where the app's budget must be asked first. */
  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer>;
  /** The upstream took the job and calls it so. */
  bind(admission: string, ref: string): void;
  /** A webhook that was known only once a large body had passed. */
  owe(admission: string, webhook: string): void;
  /** What the idempotency key of a large body stands for, once the body has passed. */
  identify(admission: string, digest: string): void;
  /** The upstream never had it: reservation and idempotency key are free again. */
  release(admission: string): void;
  settle(ending: Ending): Settled;
  /** The final answer as the owner sees it, for the client's webhook. */
  notify(admission: string, body: string): void;
  /** A retry reserves what the job's earlier admission reserved. */
  job(admission: string): MeteredJob | undefined;
  /** The owner's jobs that are not at their end, oldest first. */
  openJobs(owner: string, model: string, count: number): MeteredJob[];
  /** A link that no job of the owner's ended with. */
  addToGallery(owner: string, row: GalleryRow): void;
  /** The owner's jobs, newest first. */
  jobs(owner: string, model: string | undefined, offset: number, count: number): { jobs: MeteredJob[]; total: number };
}
