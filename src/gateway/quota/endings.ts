// How jobs end at a payer's meter: each once, by whoever sees it first, or by what must be assumed.
import { isFinal, type JobState } from "../../contract/states.ts";
import type { MeterStores } from "./meter-stores.ts";
import { type Bindable, type JobRow, joinedOperation } from "./metered-jobs.ts";
import type { Ending, Settled } from "./metering.ts";
import { assumeCharge, type Charge, chargeOf, isFarOff } from "./settlement.ts";

/** Another admission pays. */
const freeRide: Charge = { microUsd: 0, assumed: false };
const notThere: Settled = { admission: "", first: false, chargedMicroUsd: 0, isAssumed: false, wantsNotice: false };
/** As many overdue reservations as one admission settles, where the alarm is late. */
const expireAtOnce = 4;
/** How many overdue jobs one alarm handles before it makes room for calls. */
const tickSize = 100;

export class Endings {
  readonly #stores: MeterStores;

  constructor(stores: MeterStores) {
    this.#stores = stores;
  }

  /** Without a key it is one statement, and so all or nothing by itself. */
  bind(admission: string, ref: string, now: number): void {
    const job = this.#stores.jobs.toBind(admission);
    if (job?.idempotencyKey === null) this.#stores.jobs.bind(job, ref, now);
    else if (job) this.#stores.transaction(() => this.#bind(job, ref, now));
  }

  #bind(job: Bindable, ref: string, now: number): void {
    this.#stores.jobs.bind(job, ref, now);
    if (job.idempotencyKey !== null) this.#stores.idempotency.bind(job.owner, job.idempotencyKey, job.admission, ref);
  }

  identify(admission: string, digest: string): void {
    const job = this.#stores.jobs.toBind(admission);
    if (!job || job.idempotencyKey === null) return;
    this.#stores.idempotency.identify(job.owner, job.idempotencyKey, admission, digest);
  }

  /** An upload may last until the meter assumes that its job was lost: what the upstream never had is free even then. */
  release(admission: string, now: number): void {
    this.#stores.transaction(() => {
      const job = this.#stores.jobs.find(admission);
      const isLost = job?.assumed === 1 && job.ref === null;
      if (!job || (job.endedAt !== null && !isLost)) return;
      this.#stores.spend(job, now, takenBack(job));
      this.#stores.jobs.remove(job);
      this.#stores.freeKey(job);
    });
  }

  settle(ending: Ending, now: number): Settled {
    return this.#stores.transaction(() => {
      const job = this.#settledBy(ending);
      if (!job) return notThere;
      if (!isFinal(ending.status)) this.#see(job, ending.status);
      else this.#settle(job, ending, now);
      for (const { key, media } of ending.media ?? []) this.#stores.gallery.add(job.owner, { ...media, key }, now);
      const after = this.#stores.jobs.find(job.admission) ?? job;
      const wantsNotice = isFinal(ending.status) && after.webhook !== null;
      const first = job.endedAt === null && after.endedAt !== null;
      return {
        admission: job.admission,
        first,
        chargedMicroUsd: after.charged,
        isAssumed: after.assumed === 1,
        wantsNotice,
      };
    });
  }

  #settledBy({ admission, upstreamId: ref }: Ending): JobRow | undefined {
    const named = this.#stores.jobs.find(admission);
    if (named?.operation === joinedOperation) return named;
    return (named && ref !== null && this.#stores.jobs.findByRef(named.owner, ref)) || named;
  }

  #see(job: JobRow, status: JobState): void {
    if (job.endedAt === null) this.#stores.jobs.see(job, status);
  }

  #settle(found: JobRow, ending: Ending, now: number): void {
    if (found.ref === null && ending.upstreamId !== null) this.#bind(found, ending.upstreamId, now);
    const job = this.#stores.jobs.find(found.admission) ?? found;
    if (job.endedAt !== null && !job.assumed) return;
    const joined = job.operation === joinedOperation;
    const charge = joined
      ? freeRide
      : chargeOf(ending.status, ending.costMicroUsd, job.reserved, ending.assumedMicroUsd);
    /** An assumption is corrected by a truth, not by another assumption. */
    if (job.endedAt !== null && charge.assumed) return;
    if (charge.assumed && ending.status === "COMPLETED" && ending.assumedMicroUsd === undefined)
      log(job, "no cost in the answer: the reservation counts");
    if (isFarOff(charge, job.reserved)) log(job, `costs ${charge.microUsd}, ${job.reserved} were reserved`);
    /** The handle of a first admission may tell of a failure that a retry has behind it. */
    const stale = job.admission !== ending.admission && charge.microUsd === 0;
    this.#end(job, ending.status, { ...charge, assumed: charge.assumed || stale }, ending.completedAt, now);
  }

  /** The one way that a job ends; the truth about one that was assumed comes through here again. */
  #end(job: JobRow, status: JobState, charge: Charge, endedAt: number, now: number): void {
    const { microUsd, assumed } = charge;
    this.#stores.spend(job, now, takenBack(job), assumed ? { assumed: microUsd } : { known: microUsd });
    this.#stores.jobs.end(job, { status, charged: microUsd, assumed, endedAt });
    /** Of an OpenAI call nobody ever learns an id: its key stays, since the upstream may have had the call. */
    if (job.ref === null && job.operation !== "openai") this.#stores.freeKey(job);
  }

  notify(admission: string, body: string, now: number): void {
    this.#stores.transaction(() => {
      const job = this.#stores.jobs.find(admission);
      if (!job || job.webhook === null) return;
      this.#stores.outbox.add(admission, job.webhook, body, now);
      this.#stores.jobs.noticed(admission);
    });
  }

  /** The upstream does not know the job any more, or nobody ever learned of it. */
  assume(admission: string, now: number): void {
    this.#stores.transaction(() => {
      const job = this.#stores.jobs.find(admission);
      if (job && job.endedAt === null) this.#assume(job, now);
    });
  }

  #assume(job: JobRow, now: number): void {
    log(job, "no answer: what was reserved is assumed, or nothing where it never started");
    this.#end(job, "TIMED_OUT", assumeCharge(job.seen, job.reserved), now, now);
  }

  expireOverdue(now: number): void {
    const overdue = this.#stores.jobs.expired(now, expireAtOnce);
    if (overdue.length === 0) return;
    this.#stores.transaction(() => {
      for (const job of overdue) this.#assume(job, now);
    });
  }

  /** Jobs to ask about, their next question put off; those that expired are settled. */
  claimDue(now: number, count: number): JobRow[] {
    return this.#stores.transaction(() => {
      const due = this.#stores.jobs.due(now, tickSize);
      for (const job of due) if (job.expiresAt <= now) this.#assume(job, now);
      const left = due.filter((job) => job.expiresAt > now);
      const ask = left.filter((job) => job.ref !== null).slice(0, count);
      for (const job of left) if (job.ref === null || ask.includes(job)) this.#stores.jobs.postpone(job, now);
      return ask;
    });
  }
}

/** What was counted for a job that is not known to have ended. */
function takenBack({ endedAt, reserved, charged }: JobRow): { reserved: number } | { assumed: number } {
  return endedAt === null ? { reserved: -reserved } : { assumed: -charged };
}

function log({ admission, model }: JobRow, problem: string): void {
  console.warn(JSON.stringify({ meter: admission, model, problem }));
}
