// A job and its retries run one upstream job. Example: A fails, its retry B fails, its retry C completes. A, B and C
// are a chain, C is the newest, and only C is charged.
import { handedOutPrice } from "./charge.ts";
import { mayBeRetried } from "./ending-rules.ts";
import type { Job } from "./job.ts";
import { endedJob, provenName } from "./kept-result.ts";
import type { MeterStores } from "./meter-stores.ts";

export class Chain {
  readonly #stores: MeterStores;

  constructor(stores: MeterStores) {
    this.#stores = stores;
  }

  /**
   * The one admission of the chain that may still be settled or corrected; undefined if its row is gone. A doubtful
   * retry (the upstream's answer was lost) is skipped if a later retry was accepted: what is heard of the job is the
   * later one's.
   */
  newestOf(job: Job): Job | undefined {
    let newest: Job | undefined = (job.boundAt === null ? this.laterThan(job) : undefined) ?? job;
    while (newest && newest.successor !== null) newest = this.#stores.jobs.find(newest.successor);
    return newest;
  }

  /** The last accepted retry, if it was admitted after this one. */
  laterThan({ retryOf, turn }: Job): Job | undefined {
    const before = retryOf === null ? undefined : this.#stores.jobs.find(retryOf);
    const last = before && this.newestOf(before);
    return last && last.turn > turn ? last : undefined;
  }

  /** The admission that the owner's id of the job names: a retry is answered under the same id, and is a retry of it. */
  firstOf(admission: string): string {
    return this.#stores.jobs.find(admission)?.retryOf ?? admission;
  }

  /**
   * The upstream accepted the retry. All runs together are one charge, that of the retry: it takes over what earlier
   * runs cost and handed out.
   */
  accept(retry: Job, now: number): void {
    const later = this.laterThan(retry);
    if (later) this.#takeOver(retry, later, now);
    else for (const older of this.before(retry)) this.#takeOver(older, retry, now);
  }

  #takeOver(older: Job, retry: Job, now: number): void {
    const { jobs } = this.#stores;
    const { pieces, textBytes } = older;
    const earlierCost = Math.max(retry.earlierCost, older.earlierCost, statedOf(older));
    const earlierText = Math.max(retry.earlierText, older.earlierText, textOf(older));
    if (pieces > 0 || textBytes > 0 || earlierCost > retry.earlierCost || earlierText > retry.earlierText) {
      const handed = {
        pieces: retry.pieces + pieces,
        textBytes: retry.textBytes + textBytes,
        earlierCost,
        earlierText,
      };
      jobs.update(retry, handed);
      jobs.update(older, { pieces: 0, textBytes: 0, earlierCost: 0, earlierText: 0 });
    }
    if (wasToldOf(older)) jobs.update(retry, { noticed: 1 });
    const endedAt = older.endedAt ?? Math.max(now, older.admittedAt);
    jobs.update(older, { noticed: 1, successor: older.successor ?? retry.admission });
    this.#stores.end(older, { status: older.status ?? "FAILED", charged: 0, assumed: 0, endedAt }, now);
    this.#stores.debts.pay(older.admission, "webhook");
    this.#stores.debts.pay(older.admission, "input");
    if (retry.noticed === 0) this.#stores.outbox.handInput(older.admission, retry.admission);
    else this.#stores.outbox.forgetInput(older.admission);
    for (const name of [older.admission, provenName(older)]) this.#dropFailure(name);
  }

  /** The failure of an earlier run is no longer the job's answer. */
  #dropFailure(name: string): void {
    const { debts } = this.#stores;
    const owed = debts.result(name);
    if (owed && endedJob(new TextDecoder().decode(owed))?.status !== "COMPLETED") debts.pay(name, "result");
  }

  /** The earlier runs of the retry's chain, oldest first. */
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

/** A webhook told an end after which nothing is run again: the "retry" is that run, and has no other end to tell of. */
function wasToldOf({ noticed, successor, status }: Job): boolean {
  return noticed === 1 && successor === null && !mayBeRetried(status);
}

function statedOf({ endedAt, assumed, charged }: Job): number {
  return endedAt !== null && assumed === 0 ? charged : 0;
}

/** The text that its owner keeps is charged, unless the run failed. */
function textOf(job: Job): number {
  return job.assumed === 1 && job.status !== "FAILED" ? Math.min(job.charged, handedOutPrice(job)) : 0;
}
