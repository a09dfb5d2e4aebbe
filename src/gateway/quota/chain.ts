// A job and its retries are one upstream job: each retry that the upstream accepted takes the place of the one before.
import type { Job } from "./job.ts";
import type { MeterStores } from "./meter-stores.ts";

export class Chain {
  readonly #stores: MeterStores;

  constructor(stores: MeterStores) {
    this.#stores = stores;
  }

  /** The one admission that may still be settled or corrected; undefined where its row is gone. */
  newestOf(job: Job): Job | undefined {
    let newest: Job | undefined = job;
    while (newest && newest.successor !== null) newest = this.#stores.jobs.find(newest.successor);
    return newest;
  }

  /** The upstream runs the job again: one charge for all its runs, the retry's, which takes over what they cost and handed out. */
  accept(retry: Job, now: number): void {
    const { jobs } = this.#stores;
    for (const older of this.#before(retry)) {
      const { pieces, textBytes } = older;
      const stated = older.endedAt !== null && older.assumed === 0 ? older.charged : 0;
      const earlierCost = Math.max(retry.earlierCost, older.earlierCost, stated);
      if (pieces > 0 || textBytes > 0 || earlierCost > retry.earlierCost) {
        jobs.update(retry, { pieces: retry.pieces + pieces, textBytes: retry.textBytes + textBytes, earlierCost });
        jobs.update(older, { pieces: 0, textBytes: 0, earlierCost: 0 });
      }
      const endedAt = older.endedAt ?? Math.max(now, older.admittedAt);
      this.#stores.end(older, { status: older.status ?? "FAILED", charged: 0, assumed: 0, endedAt }, now);
      jobs.update(older, { noticed: 1, successor: older.successor ?? retry.admission });
    }
  }

  /** Oldest first. */
  #before(retry: Job): Job[] {
    const before: Job[] = [];
    let next = retry.retryOf;
    while (next !== null && next !== retry.admission) {
      const job = this.#stores.jobs.find(next);
      if (!job) break;
      before.push(job);
      next = job.successor;
    }
    return before;
  }

  /** A job's webhook tells of its last end, and so goes on with its retry. */
  webhookOf(admission: string): string | null {
    const job = this.#stores.jobs.find(admission);
    return (job && this.newestOf(job)?.webhook) ?? null;
  }
}
