// When a meter looks after a job by itself: in time for the upstream's retention, until the job expires.
const secondMs = 1000;
const minuteMs = 60 * secondMs;

/** An admission that nobody bound by then was lost on its way; longer than any submit may take. */
const unboundMs = 10 * minuteMs;
/** The upstream counts a ttl from when it got the job. */
const graceMs = minuteMs;
/** The last question comes so early that the upstream still knows the job. */
const lastAskMs = 15 * secondMs;
const askShortMs = 30 * secondMs;
const askLongMs = 10 * minuteMs;
/** Questions come up to this much earlier, so that jobs of one moment are not asked about in one moment. */
const spread = 0.25;

export interface Timed {
  readonly admission: string;
  readonly admittedAt: number;
  readonly ttlMs: number;
  readonly retentionMs: number;
}

export function expiresAt({ admittedAt, ttlMs }: Timed, isBound: boolean): number {
  return admittedAt + (isBound ? ttlMs + graceMs : Math.min(ttlMs, unboundMs));
}

/** The first moment that a job needs attention, whether it is bound by then or not. */
export function firstDueAt(job: Timed): number {
  return Math.min(expiresAt(job, false), dueAt(job, true, job.admittedAt));
}

/** The next moment that a job needs attention. */
export function dueAt(job: Timed, isBound: boolean, now: number): number {
  const end = expiresAt(job, isBound);
  if (!isBound) return end;
  const every = job.retentionMs < 2 * askLongMs ? askShortMs : askLongMs;
  const next = now + Math.round(every * (1 - spread * chanceOf(job.admission)));
  const last = job.admittedAt + job.ttlMs - lastAskMs;
  return Math.min(end, now < last ? Math.min(next, last) : next);
}

/** From 0 to 1, the same for an admission whenever it is asked for. */
function chanceOf(admission: string): number {
  return (Number.parseInt(admission.slice(-4), 36) || 0) / 36 ** 4;
}
