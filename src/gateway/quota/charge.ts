// What an ended job is charged: the cost that its answer stated, or else what was handed out or reserved. Pure
// functions of the row.
import type { JobState } from "../../contract/states.ts";
import { findModel } from "../../models/index.ts";
import { type Job, ttlEndsAt } from "./job.ts";

export interface Charge {
  readonly microUsd: number;
  /** No answer said so: a later truth corrects it. */
  readonly assumed: boolean;
}

/** Another admission pays. */
const shared: Charge = { microUsd: 0, assumed: false };

/** A cost that cannot be true counts as none; one far above the estimate counts as it is. */
export function chargeOf(job: Job, status: JobState, cost: unknown, assumedMicroUsd = job.reserved): Charge {
  if (job.operation === "joined") return shared;
  const ofThisRun = chargeOfRun(job, status, cost, assumedMicroUsd);
  return { ...ofThisRun, microUsd: Math.max(ofThisRun.microUsd, job.earlierCost) };
}

function chargeOfRun(job: Job, status: JobState, cost: unknown, assumedMicroUsd: number): Charge {
  if (status === "FAILED") return { microUsd: job.earlierText, assumed: job.earlierText > job.earlierCost };
  const truth = trueCost(cost);
  if (truth !== undefined) return { microUsd: truth, assumed: false };
  const whole = Math.min(assumedMicroUsd, job.reserved);
  return { microUsd: status === "COMPLETED" ? whole : handedOutPrice(job), assumed: true };
}

function trueCost(cost: unknown): number | undefined {
  if (typeof cost !== "number" || !(cost >= 0)) return undefined;
  const whole = Math.round(cost);
  return Number.isSafeInteger(whole) ? whole + 0 : undefined;
}

/**
 * The charge if the job's end will never be known: the upstream does not know the job (any more), cannot be reached, or
 * never answered.
 */
export function assumedCharge(job: Job, isGone: boolean): Charge {
  return { microUsd: Math.max(unknownCost(job, isGone), job.earlierCost), assumed: true };
}

function unknownCost(job: Job, isGone: boolean): number {
  const { reserved, doubtedAt, hasNotice, seen, seenAt } = job;
  if (job.pieces > 0 || job.textBytes > 0) return handedOutPrice(job);
  if (!isKnownUpstream(job)) return doubtedAt !== null || hasNotice ? 0 : reserved;
  const neverStarted = isGone && seen === "IN_QUEUE" && seenAt !== null && seenAt >= ttlEndsAt(job);
  return neverStarted ? 0 : reserved;
}

/**
 * Whether the relay or a notice said that the upstream has the job. A retry's id proves nothing: it is the earlier
 * run's.
 */
function isKnownUpstream({ boundAt, upstreamId, retryOf, noticeAt }: Job): boolean {
  return boundAt !== null || (retryOf === null ? upstreamId !== null : noticeAt !== null);
}

const bytesPerToken = 4;

/**
 * The price of the text that the owner was given, at most the reservation. If the model is not paid by tokens, it is
 * the whole reservation.
 */
export function handedOutPrice({ model, inputBytes, pieces, textBytes, reserved }: Job): number {
  if (pieces === 0 && textBytes === 0) return 0;
  const usage = {
    input: Math.ceil(inputBytes / bytesPerToken),
    output: Math.max(pieces, Math.ceil(textBytes / bytesPerToken)),
  };
  return Math.min(findModel(model)?.costOf([{ usage }], {}) ?? reserved, reserved);
}

/** An estimate so wrong is worth a line in the log. */
const farOff = 10;

export function isFarOff({ microUsd, assumed }: Charge, reservedMicroUsd: number): boolean {
  return !assumed && microUsd > reservedMicroUsd * farOff;
}
