// What an answer, or the time, says of a job by its row. Pure functions.
import { limits } from "../../contract/limits.ts";
import { isFinal, type JobState } from "../../contract/states.ts";
import { isShare, type Job, ttlEndsAt } from "./job.ts";
import { clocksDifferMs } from "./job-timing.ts";
import type { Ending } from "./metering.ts";

/** An answer, and how the meter takes it. */
export interface Taken extends Ending {
  /** Nobody was told the known end as the retry's, and this answer is younger than the retry: so that was the earlier run's. */
  readonly replaces?: boolean;
}

/** Whether the upstream can be asked about the job: its id must be known. */
export function isAsked(job: Job): boolean {
  return job.upstreamId !== null && !isShare(job);
}

/** The upstream runs again what came to no good end. */
export function mayBeRetried(status: JobState | null): boolean {
  return status === "FAILED" || status === "TIMED_OUT";
}

/** It keeps such a job for so long. */
export function mayBeRetriedUntil({ status, endedAt }: Job): number {
  return endedAt !== null && mayBeRetried(status) ? endedAt + limits.runRetentionMs : 0;
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

/**
 * Of two different ends of a retry, one that is known and one that is told: which was an earlier run's. Only what FAILED
 * or TIMED_OUT is run again, so only these can be. Example: a retry is known to have FAILED, and an answer says COMPLETED.
 * Then the failure was the earlier run's, seen late or by a clock that was set back. Of two such ends the known one
 * stays, unless the answer is known to replace it.
 */
const earlierRunsEnd: Partial<Record<JobState, Partial<Record<JobState, "known" | "told">>>> = {
  FAILED: { TIMED_OUT: "told", COMPLETED: "known", CANCELLED: "known" },
  TIMED_OUT: { FAILED: "told", COMPLETED: "known", CANCELLED: "known" },
  COMPLETED: { FAILED: "told", TIMED_OUT: "told" },
  CANCELLED: { FAILED: "told", TIMED_OUT: "told" },
};

type TakenEnd = Pick<Taken, "status" | "replaces">;

function earlierRunsEndOf({ retryOf, status: known }: Job, { status: told, replaces }: TakenEnd) {
  const which = retryOf === null || known === null ? undefined : earlierRunsEnd[known]?.[told];
  return which === "told" && replaces ? "known" : which;
}

/** Whether what an answer says of an accepted retry is of an earlier run: by when it was asked for, or by the end it tells. */
export function isOfEarlierRun(job: Job, ending: TakenEnd & Pick<Ending, "askedAt">, now: number): boolean {
  const { retryOf, boundAt } = job;
  if (retryOf !== null && boundAt !== null && isBefore(ending.askedAt, boundAt, now)) return true;
  return earlierRunsEndOf(job, ending) === "told" && !isCorrectable(job);
}

/**
 * The end of an accepted retry that may be an earlier run's all the same. The Worker's clock says when the upstream was
 * asked, and the meter's when the retry was accepted: of moments so near to each other, neither is known to be the first.
 */
export function isAskedNearAcceptance(
  { retryOf, boundAt }: Job,
  { status, askedAt }: Pick<Ending, "status" | "askedAt">,
): boolean {
  return retryOf !== null && boundAt !== null && mayBeRetried(status) && askedAt < boundAt + clocksDifferMs;
}

/** It expired, and nobody had told how it ended: its true end may still come. */
export function isAssumedToBeOver({ status, assumed, endedAt, expiresAt }: Job): boolean {
  return status === "TIMED_OUT" && assumed === 1 && endedAt !== null && endedAt >= expiresAt;
}

/** An end that may be retried and that nobody has told the cost of: it may be assumed altogether. */
function isCorrectable({ status, assumed }: Job): boolean {
  return assumed === 1 && mayBeRetried(status);
}

/** Whether what is known of a retry's end was the end of an earlier run, by another end that is told now. */
export function wasOfEarlierRun(job: Job, ending: TakenEnd): boolean {
  return earlierRunsEndOf(job, ending) === "known";
}

/** Whether an answer may replace the known end of an accepted retry that may be an earlier run's, as the answer may be, too. */
export function mayReplace(job: Job, ending: Pick<Ending, "status" | "askedAt">): boolean {
  if (job.retryOf === null || job.boundAt === null || job.status === ending.status) return false;
  return mayBeRetried(job.status) && mayBeRetried(ending.status) && !isAskedNearAcceptance(job, ending);
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

export function saysNothingNew(job: Job, ending: Taken): boolean {
  const { status, askedAt, media = [] } = ending;
  if (media.length > 0 || job.boundAt === null || job.guessed === 1) return false;
  if (job.endedAt !== null) return isSure(job, ending);
  /** Whether it still waited when its time was over says what it is charged. */
  const isOver = ttlEndsAt(job);
  return job.seen === status && (askedAt < isOver || (job.seenAt ?? 0) >= isOver);
}

/** It has ended, and what it was charged stays. */
export function isSure(job: Job, ending: TakenEnd): boolean {
  return job.endedAt !== null && job.assumed === 0 && !wasOfEarlierRun(job, ending);
}
