// When a meter looks after a job by itself: in time for the upstream's retention, at its ttl's end, and before it expires.
import { limits } from "../../contract/limits.ts";
import { isShare, type Job } from "./job.ts";

const secondMs = 1000;
const minuteMs = 60 * secondMs;

/** An admission without an upstream id counts as lost after this. No submit takes as long; a balanced call may. */
const unboundMs = 10 * minuteMs;
/** The upstream counts a ttl from when it got the job. */
const graceMs = minuteMs;
/** How long a doubtful admission waits for a notice. */
const doubtMs = minuteMs;
/** How long a network's meter holds the place of an address's job without a word of it: its end may be lost. */
const shareMs = 60 * minuteMs;
/** A question comes so early that the upstream still knows the job. */
const earlyMs = 15 * secondMs;
const askShortMs = 30 * secondMs;
const askLongMs = 10 * minuteMs;
/** Questions come up to this much earlier, so that jobs of one moment are not asked about in one moment. */
const spread = 0.25;
/** After a notice whose end the upstream does not confirm. */
const looksMs = [2 * secondMs, 10 * secondMs, 30 * secondMs];
/** Clocks of machines differ by less. */
export const clocksDifferMs = 5 * secondMs;
/** How long a job that goes on after its time keeps its place without a word of it: some questions fail or come late. */
export const outlivesMs = 4 * askLongMs;
/** How long the last question may take. After that the job's end is assumed. */
export const lastAnswerMs = minuteMs;
/** So many are asked about meanwhile, a few at once, where each answer takes as long as it may. */
const answeredMeanwhile = 12;

export type Timed = Pick<
  Job,
  | "admission"
  | "admittedAt"
  | "ttlMs"
  | "retentionMs"
  | "boundAt"
  | "doubtedAt"
  | "seen"
  | "seenAt"
  | "noticeAt"
  | "operation"
>;

/** What lies ahead of the clock was written before it was set back: it counts from now. */
function begunAt({ admittedAt }: Timed, now: number): number {
  return Math.min(admittedAt, now);
}

export function expiresAt(job: Timed, now: number): number {
  const { ttlMs, boundAt, doubtedAt, seen, seenAt, operation } = job;
  const admittedAt = begunAt(job, now);
  /** Of what has no id here its relay or its address's meter tells that it goes on. */
  const isTold = seen === "IN_PROGRESS" && seenAt !== null;
  const toldAt = isTold ? Math.min(seenAt, now) : admittedAt;
  /** Its owner may prolong it, of which no word comes before the first question. */
  if (isShare(job)) return toldAt + (isTold ? shareMs : Math.min(Math.max(ttlMs, askLongMs), shareMs)) + graceMs;
  if (boundAt !== null) return admittedAt + ttlMs + graceMs;
  if (doubtedAt !== null) return Math.min(doubtedAt, now) + doubtMs;
  return toldAt + (operation === "lb" ? ttlMs : Math.min(ttlMs, unboundMs));
}

/** The first moment that a job needs attention, whether it is bound by then or not. */
export function firstDueAt(job: Timed, now: number): number {
  const admittedAt = begunAt(job, now);
  const expiry = expiresAt(job, now);
  return isShare(job) ? expiry : Math.min(expiry, dueAt({ ...job, boundAt: admittedAt }, admittedAt));
}

/** The next moment that a job needs attention. */
export function dueAt(job: Timed, now: number): number {
  const { ttlMs, boundAt, noticeAt } = job;
  const expiry = expiresAt(job, now);
  if (isShare(job)) return expiry;
  const looks = noticeAt === null ? [] : looksMs.map((ms) => noticeAt + ms).filter((at) => at > now);
  if (boundAt === null) return Math.min(expiry, ...looks);
  const end = begunAt(job, now) + ttlMs;
  const fixed = [end - earlyMs, end, expiry].filter((at) => at > now);
  return Math.min(askedAgainAt(job, now), ...looks, ...fixed);
}

/** The next question about a job of which nothing else is expected. */
function askedAgainAt({ retentionMs, admission }: Timed, now: number): number {
  const every = retentionMs < 2 * askLongMs ? askShortMs : askLongMs;
  return now + Math.round(every * (1 - spread * chanceOf(admission)));
}

/** Jobs that are asked about at one moment wait for each other's answers. */
export function lastAnswersMs(count: number): number {
  return lastAnswerMs * Math.max(1, count / answeredMeanwhile);
}

/** No job lives longer: what the upstream says of it then is not believed. */
export function isBeyondBelief(job: Timed, now: number): boolean {
  return begunAt(job, now) + limits.ttlMs.max + graceMs <= now;
}

/** From 0 to 1, the same for an admission whenever it is asked for. */
function chanceOf(admission: string): number {
  return (Number.parseInt(admission.slice(-4), 36) || 0) / 36 ** 4;
}
