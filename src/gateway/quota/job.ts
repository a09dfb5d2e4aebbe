// A job as the meter keeps it: one row, open or ended. What it counts for is a function of the row alone.
import { isFinal, type JobState } from "../../contract/states.ts";
import type { Kind } from "../../models/model.ts";
import type { MeteredJob, PlanClaim } from "./metering.ts";

/** `joined` shares another admission's job and pays nothing; `network` is an address's job in the meter of its /48. */
export type JobOperation = "run" | "runsync" | "retry" | "openai" | "lb" | "joined" | "network";

export type Job = {
  readonly admission: string;
  /** The number of the admission in its meter: the order of admissions, even if the clock was set back. */
  readonly turn: number;
  readonly owner: string;
  /** A token's that narrows, or the payer's own. */
  readonly account: string;
  readonly model: string;
  readonly kind: Kind | "";
  readonly operation: JobOperation;
  /** Which plan its caller came with, and who said so. */
  readonly plan: string;
  readonly planFrom: PlanClaim["planFrom"];
  /** The request counters that it was counted in. */
  readonly counters: string;
  /** Micro-USD. */
  reserved: number;
  /** 1 where it is one of the payer's concurrent jobs. */
  place: 0 | 1;
  readonly admittedAt: number;
  ttlMs: number;
  readonly retentionMs: number;
  expiresAt: number;
  dueAt: number;
  /** A retry's is known from the start. */
  upstreamId: string | null;
  /** When the meter heard that the upstream took it. */
  boundAt: number | null;
  /** 1 if only a notice has told it: the relay's id replaces it. */
  guessed: 0 | 1;
  doubtedAt: number | null;
  /** What the upstream last said of it while it was open, and when it was asked. */
  seen: JobState | null;
  seenAt: number | null;
  /** When a notice told of it last, and the upstream did not confirm an end. */
  noticeAt: number | null;
  readonly retryOf: string | null;
  /** The retry that took its place in the chain. */
  successor: string | null;
  inputBytes: number;
  /** Text that its owner was given so far. */
  pieces: number;
  textBytes: number;
  /** The most that the upstream stated for an earlier run of the same job: its retry does not cost less. */
  earlierCost: number;
  /** What was charged for the text that an earlier run handed out: a retry that fails does not cost less. */
  earlierText: number;
  readonly hasNotice: 0 | 1;
  webhook: string | null;
  /** 1 once its webhook's body is in the outbox, or will never come. */
  noticed: 0 | 1;
  readonly idempotencyKey: string | null;
  readonly network: string | null;
  /** How it ended; null while it is open. */
  status: JobState | null;
  charged: number;
  /** 1 if no answer stated the cost. */
  assumed: 0 | 1;
  endedAt: number | null;
};

export const notEnded = { status: null, charged: 0, assumed: 0, endedAt: null } as const satisfies Partial<Job>;

export interface Amounts {
  /** What answers said that jobs cost. */
  readonly known: number;
  /** What was charged where no answer said it. */
  readonly assumed: number;
  readonly reserved: number;
}

export const nothing: Amounts = { known: 0, assumed: 0, reserved: 0 };

/** The one place that says what a job counts for, at its admission, at its end, and when its row goes. */
export function amountsOf({ endedAt, reserved, charged, assumed }: Job): Amounts {
  if (endedAt === null) return { known: 0, assumed: 0, reserved };
  return assumed ? { known: 0, assumed: charged, reserved: 0 } : { known: charged, assumed: 0, reserved: 0 };
}

/**
 * A share is an address's job in its network's meter. The address's own meter asks for its end, delivers its webhook
 * and reports it to the budget.
 */
export function isShare({ operation }: Pick<Job, "operation">): boolean {
  return operation === "network";
}

/** Only a notice has told its upstream id, which may be another user's job. A retry's is known from the start. */
export function isUnproven({ boundAt, guessed, retryOf }: Job): boolean {
  return (boundAt === null || guessed === 1) && retryOf === null;
}

/** By the gateway's clock. A job that has not begun by then never will. */
export function ttlEndsAt({ admittedAt, ttlMs }: Job): number {
  return admittedAt + ttlMs;
}

export function describeJob(job: Job): MeteredJob {
  return {
    admission: job.admission,
    owner: job.owner,
    upstreamId: job.boundAt === null || isUnproven(job) ? null : job.upstreamId,
    model: job.model,
    status: job.status ?? openStatus(job.seen),
    reservedMicroUsd: job.reserved,
    inputBytes: job.inputBytes,
    costMicroUsd: job.endedAt === null ? null : job.charged,
    isAssumed: job.assumed === 1,
    isGuessed: job.guessed === 1,
    admittedAt: job.admittedAt,
    endedAt: job.endedAt,
  };
}

function openStatus(seen: JobState | null): JobState {
  return seen === null || isFinal(seen) ? "IN_QUEUE" : seen;
}
