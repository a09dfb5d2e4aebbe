// A job and its retries are one upstream job: each retry that the upstream accepted takes the place of the one before.
import { handedOutPrice } from "./charge.ts";
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

  /** The admission that the owner's id of the job names: a retry is answered under the same id. */
  firstOf({ admission, retryOf }: Job): string {
    let first = admission;
    for (let before = retryOf; before !== null; before = this.#stores.jobs.find(before)?.retryOf ?? null)
      first = before;
    return first;
  }

  /** The upstream runs the job again: one charge for all its runs, the retry's, which takes over what they cost and handed out. */
  accept(retry: Job, now: number): void {
    const { jobs } = this.#stores;
    for (const older of this.before(retry)) {
      const { pieces, textBytes } = older;
      const earlierCost = Math.max(retry.earlierCost, older.earlierCost, statedOf(older));
      const earlierText = Math.max(retry.earlierText, older.earlierText, textOf(older));
      if (pieces > 0 || textBytes > 0 || earlierCost > retry.earlierCost || earlierText > retry.earlierText) {
        const handed = { pieces: retry.pieces + pieces, textBytes: retry.textBytes + textBytes };
        jobs.update(retry, { ...handed, earlierCost, earlierText });
        jobs.update(older, { pieces: 0, textBytes: 0, earlierCost: 0, earlierText: 0 });
      }
      const endedAt = older.endedAt ?? Math.max(now, older.admittedAt);
      jobs.update(older, { noticed: 1, successor: older.successor ?? retry.admission });
      this.#stores.end(older, { status: older.status ?? "FAILED", charged: 0, assumed: 0, endedAt }, now);
      this.#stores.debts.pay(older.admission, "webhook");
    }
  }

  /** Those that are known to have been run, oldest first. */
  before(retry: Job): Job[] {
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

function statedOf({ endedAt, assumed, charged }: Job): number {
  return endedAt !== null && assumed === 0 ? charged : 0;
}

/** The text that its owner keeps is charged, unless the run failed. */
function textOf(job: Job): number {
  return job.assumed === 1 && job.status !== "FAILED" ? Math.min(job.charged, handedOutPrice(job)) : 0;
}
