// What an answer, or the time, says of a job by its row. Pure functions.
import { limits } from "../../contract/limits.ts";
import { isFinal } from "../../contract/states.ts";
import { isShare, type Job, ttlEndsAt } from "./job.ts";
import type { Ending } from "./metering.ts";

/** Whether the upstream can be asked about the job: its id must be known. */
export function isAsked(job: Job): boolean {
  return job.upstreamId !== null && !isShare(job);
}

/** The upstream keeps a job that came to no good end for so long. */
export function mayBeRetriedUntil({ status, endedAt }: Job): number {
  return endedAt !== null && (status === "FAILED" || status === "TIMED_OUT") ? endedAt + limits.runRetentionMs : 0;
}

/**
 * The upstream id that an end proves. The end of a doubtful retry proves that the upstream ran it, under the id of the
 * first run.
 */
export function idOf(job: Job, { upstreamId, status }: Ending): string | null {
  return upstreamId ?? (isDoubtfulRetry(job) && isFinal(status) ? job.upstreamId : null);
}

/** Whether the job's id is certain: the relay told it, or it is a retry, whose id is known from the start. */
export function isNamed({ boundAt, retryOf }: Job): boolean {
  return boundAt !== null || retryOf !== null;
}

export function isDoubtfulRetry({ boundAt, retryOf }: Job): boolean {
  return boundAt === null && retryOf !== null;
}

/** A notice named one id, and the relay another one since: the notice was of another job. */
export function isOfAnother({ boundAt, upstreamId }: Job, ending: Ending): boolean {
  return ending.isUnproven === true && boundAt !== null && upstreamId !== ending.upstreamId;
}

/** An answer to a question asked before the retry was accepted is of the earlier run. */
export function isStale({ retryOf, boundAt }: Job, { askedAt }: Pick<Ending, "askedAt">, now: number): boolean {
  return retryOf !== null && boundAt !== null && isBefore(askedAt, boundAt, now);
}

/** The same where the clock tells nothing: the retry is known to have ended otherwise. */
export function isEarlierEnd(job: Job, { status }: Pick<Ending, "status">): boolean {
  return job.retryOf !== null && job.status !== status && isFinal(status) && isSure(job, { status });
}

/** A moment in the future means that the clock was set back: then nothing counts as before it. */
export function isBefore(askedAt: number, at: number, now: number): boolean {
  return askedAt < at && at <= now;
}

/**
 * The end changes the job's own row alone: no webhook, network, media link or retry has to hear of it. The release before
 * takes such a row for an open one: so only a load-balanced call ends like this, for which the end is half of its cost.
 */
export function endsAlone(job: Job, { status, isUnproven, isUntold, media = [] }: Ending): boolean {
  if (job.operation !== "lb" || job.endedAt !== null || job.network !== null) return false;
  return isFinal(status) && !isUnproven && !isUntold && media.length === 0;
}

export function saysNothingNew(job: Job, { status, askedAt, media = [] }: Ending): boolean {
  if (media.length > 0 || job.boundAt === null || job.guessed === 1) return false;
  if (job.endedAt !== null) return isSure(job, { status });
  /** Whether it still waited when its time was over says what it is charged. */
  const isOver = ttlEndsAt(job);
  return job.seen === status && (askedAt < isOver || (job.seenAt ?? 0) >= isOver);
}

/** It has ended, and what it was charged stays. */
export function isSure(job: Job, ending: Pick<Ending, "status">): boolean {
  return job.endedAt !== null && job.assumed === 0 && !wasEarlierRuns(job, ending);
}

/**
 * What failed completes by a retry alone: so the failure that ended this retry was the earlier run's, seen late or by a
 * clock that was set back.
 */
function wasEarlierRuns({ retryOf, status }: Job, ending: Pick<Ending, "status">): boolean {
  return retryOf !== null && status === "FAILED" && ending.status === "COMPLETED";
}
