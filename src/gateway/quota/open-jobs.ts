// The jobs that have not ended: when the upstream is asked about them, and when an end is assumed.
import { Chain } from "./chain.ts";
import { assumedEnd } from "./charged-end.ts";
import { isAsked, isDoubtfulRetry, isNamed } from "./ending-rules.ts";
import type { Job } from "./job.ts";
import { dueAt, isBeyondBelief, lastAnswerMs, lastAnswersMs, outlivesMs } from "./job-timing.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { Binding } from "./metering.ts";

/** The upstream has just failed to answer. */
const askAgainMs = 10_000;

export class OpenJobs {
  readonly #stores: MeterStores;
  readonly #chain: Chain;

  constructor(stores: MeterStores) {
    this.#stores = stores;
    this.#chain = new Chain(stores);
  }

  /**
   * The upstream does not know the job (any more). If only a notice named its id, that id was wrong: it is forgotten,
   * and the job stays open.
   */
  forget({ admission, upstreamId }: Binding, now: number): void {
    const job = this.#stores.jobs.findOpen(admission);
    /** The relay may have named the true one meanwhile. */
    if (!job || job.upstreamId !== upstreamId) return;
    if (isNamed(job)) this.assume(admission, now, true);
    else
      this.#stores.single(() =>
        this.#stores.jobs.update(job, { upstreamId: null, noticeAt: null, dueAt: job.expiresAt }),
      );
  }

  /**
   * Its time is over, and the upstream says that it goes on: its owner may have prolonged it there. So it keeps its place
   * and its reservation, and is asked about again, also if an answer fails to come.
   */
  outlive(admission: string, now: number): void {
    const job = this.#stores.jobs.findOpen(admission);
    if (!job) return;
    const change = { expiresAt: now + outlivesMs, dueAt: dueAt(job, now) };
    if (isBeyondBelief(job, now)) this.assume(admission, now);
    else this.#stores.single(() => this.#stores.jobs.update(job, change));
  }

  /** Ends a job whose end will never be known. */
  assume(admission: string, now: number, isGone = false): void {
    const job = this.#stores.jobs.findOpen(admission);
    if (job) this.#stores.transaction(() => this.#assume(job, now, isGone));
  }

  /** It is over, and the upstream could not be asked how it ended: it is asked again, as it may keep the result. */
  assumeUnasked(admission: string, now: number): void {
    const job = this.#stores.jobs.findOpen(admission);
    if (job) this.#stores.transaction(() => this.#assumeUnasked(job, now, now + askAgainMs));
  }

  #assumeUnasked(job: Job, now: number, askAt: number): void {
    this.#assume(job, now);
    if (isAsked(job)) this.#stores.debts.owe(job.admission, "untold", now, askAt);
  }

  /** `isGone` where the upstream said so. */
  #assume(job: Job, now: number, isGone = false): void {
    const end = assumedEnd(job, this.#isPaidElsewhere(job), isGone, now);
    // A cost that becomes known later is told under the first admission. Accepting the retry links the two, so that it
    // corrects the right one.
    if (end.charged > 0 && isDoubtfulRetry(job)) this.#chain.accept(job, now);
    this.#stores.end(job, end, now);
  }

  /** A doubtful retry of a job that another admission of the chain pays, or will pay. */
  #isPaidElsewhere(job: Job): boolean {
    const pays = (other: Job) => other.endedAt === null || other.charged > 0;
    return isDoubtfulRetry(job) && (this.#chain.laterThan(job) !== undefined || this.#chain.before(job).some(pays));
  }

  /** Ends expired jobs before anything is read or admitted, so that a late alarm blocks nobody's place. */
  endOverdue(now: number): void {
    const { jobs } = this.#stores;
    const patienceMs = lastAnswersMs(jobs.openCount);
    const over = jobs.expired(now).filter((job) => !isAsked(job) || job.expiresAt + patienceMs <= now);
    if (over.length === 0) return;
    this.#stores.transaction(() => {
      // The alarm was late: the upstream is asked about it nevertheless.
      for (const job of over) this.#assumeUnasked(job, now, now);
    });
  }

  /**
   * Takes the jobs that the alarm must ask about now, and sets their next due time. Expired jobs without an upstream id
   * are ended as assumed. Within a transaction.
   */
  claimDue(now: number, count: number): Job[] {
    const asked: Job[] = [];
    for (const job of this.#stores.jobs.due(now)) {
      if (!isAsked(job)) {
        if (job.expiresAt <= now) this.#assume(job, now);
        else this.#stores.jobs.update(job, { dueAt: Math.min(dueAt(job, now), job.expiresAt) });
      } else if (asked.length < count) {
        asked.push(job);
        if (job.network !== null) this.#stores.networkEnds.goesOn(job.admission, job.network, now);
        this.#stores.jobs.update(job, { dueAt: job.expiresAt <= now ? now + lastAnswerMs : dueAt(job, now) });
      }
    }
    return asked;
  }
}
