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
  readonly ref: string | null;
  readonly admittedAt: number;
  readonly ttlMs: number;
  readonly retentionMs: number;
}

export function expiresAt(job: Omit<Timed, "admission">): number {
  return job.admittedAt + (job.ref === null ? Math.min(job.ttlMs, unboundMs) : job.ttlMs + graceMs);
}

/** The next moment that a job needs attention. */
export function dueAt(job: Timed, now: number): number {
  const end = expiresAt(job);
  if (job.ref === null) return end;
  const every = job.retentionMs < 2 * askLongMs ? askShortMs : askLongMs;
  const next = now + Math.round(every * (1 - spread * chanceOf(job.admission)));
  const last = job.admittedAt + job.ttlMs - lastAskMs;
  return Math.min(end, now < last ? Math.min(next, last) : next);
}

/** From 0 to 1, the same for an admission whenever it is asked for. */
function chanceOf(admission: string): number {
  return (Number.parseInt(admission.slice(-4), 36) || 0) / 36 ** 4;
}
