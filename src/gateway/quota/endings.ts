// How jobs end at a payer's meter: each once, by the first who sees it, or by what must be assumed.
import { isFinal } from "../../contract/states.ts";
import { bytesOfText } from "../text-bytes.ts";
import type { Bindings } from "./bindings.ts";
import { Chain } from "./chain.ts";
import { assumedCharge, type Charge, chargeOf, isFarOff } from "./charge.ts";
import { isShare, type Job } from "./job.ts";
import { dueAt, lastAnswerMs } from "./job-timing.ts";
import type { End } from "./jobs.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { Binding, Ending, HandedOut, Settled } from "./metering.ts";
import type { ShareEnd } from "./network-ends.ts";

export class Endings {
  readonly #stores: MeterStores;
  readonly #bindings: Bindings;
  readonly #chain: Chain;
  /** Assumed while the alarm was late: the question that was due is asked nevertheless. */
  #unasked: Job[] = [];

  constructor(stores: MeterStores, bindings: Bindings) {
    this.#stores = stores;
    this.#bindings = bindings;
    this.#chain = new Chain(stores);
  }

  /**
   * Also of what was assumed to be lost meanwhile: an upload may last. A retry that was seen to run has taken over what its
   * job costs, and stays. False where it is not known.
   */
  release(admission: string, now: number): boolean {
    const job = this.#stores.jobs.find(admission);
    const isLost = job?.assumed === 1 && job.boundAt === null;
    const hasTakenOver = job?.retryOf != null && job.boundAt !== null;
    if (job && !hasTakenOver && (job.endedAt === null || isLost))
      this.#stores.transaction(() => this.#stores.remove(job, now));
    return job !== undefined;
  }

  settle(ending: Ending, now: number): Settled {
    const named = this.#stores.jobs.find(ending.admission);
    const job = named && this.#settledBy(named, ending);
    if (!job || isStale(job, ending)) return this.#unchanged(job ?? named, ending);
    if (!ending.isUntold) this.#toldOf(job, ending);
    if (isSettled(job, ending) || isOfAnother(job, ending)) return this.#unchanged(job, ending);
    return this.#stores.transaction(() => {
      const wasOpen = job.endedAt === null;
      if (ending.upstreamId !== null && !this.#mayBeRefused(job, ending)) {
        if (ending.isUnproven) this.#bindings.guessWithin(job, ending.upstreamId, now);
        else this.#bindings.bindWithin(job, ending.upstreamId, now);
      }
      if (isFinal(ending.status)) this.#settle(job, ending, now);
      else if (job.endedAt === null) this.#stores.jobs.update(job, { seen: ending.status, seenAt: ending.askedAt });
      for (const { key, media } of ending.media ?? []) this.#stores.gallery.add(job.owner, { ...media, key }, now);
      if (ending.isUntold && job.endedAt !== null)
        this.#stores.debts.owe(job.admission, "untold", now, now + job.retentionMs / 2);
      return { ...this.#unchanged(job, ending), first: wasOpen && job.endedAt !== null };
    });
  }

  /** Its owner has seen the end, or it is kept. */
  #toldOf({ admission }: Job, { status }: Ending): void {
    const { debts } = this.#stores;
    if (isFinal(status) && debts.owes(admission, "untold"))
      this.#stores.transaction(() => debts.pay(admission, "untold"));
  }

  #unchanged(job: Job | undefined, { admission, status, isUnproven }: Ending): Settled {
    return {
      admission: job?.admission ?? admission,
      first: false,
      chargedMicroUsd: job?.charged ?? 0,
      isAssumed: job?.assumed === 1,
      isOver: job !== undefined && job.endedAt !== null,
      wantsNotice: !isUnproven && isFinal(status) && job?.endedAt != null && job.webhook !== null && job.noticed === 0,
    };
  }

  /** The newest of the chain. What ended and is something else now was run again, whether that was heard of or not. */
  #settledBy(named: Job, { status, askedAt }: Ending): Job | undefined {
    const newest = this.#chain.newestOf(named);
    if (!newest || newest.status === null || newest.status === status) return newest;
    const retry = this.#stores.jobs.findUnboundRetryOf(named.admission);
    return retry && askedAt >= retry.admittedAt ? retry : newest;
  }

  /** The failure that a retry was asked for, and not the retry's own. What ended otherwise, or was assumed to, was run again. */
  #mayBeRefused(job: Job, { status }: Ending): boolean {
    if (job.retryOf === null || job.boundAt !== null || status !== "FAILED") return false;
    const before = this.#chain.before(job).at(-1);
    return !before || before.status === null || before.status === "FAILED";
  }

  #settle(job: Job, ending: Ending, now: number): void {
    if (job.endedAt !== null && !job.assumed) return;
    const said = chargeOf(job, ending.status, ending.costMicroUsd, ending.assumedMicroUsd);
    const charge = ending.isUnproven ? { ...said, assumed: true } : said;
    /** An assumption is corrected by a truth, not by another assumption; what a notice names can only raise it. */
    const isRaised = ending.isUnproven === true && charge.microUsd > job.charged;
    if (job.endedAt !== null && charge.assumed && !isRaised) return;
    if (charge.assumed && ending.status === "COMPLETED") log(job, said.assumed ? noCost : onlyNoticed);
    if (isFarOff(charge, job.reserved)) log(job, `costs ${charge.microUsd}, ${job.reserved} were reserved`);
    const endedAt = Math.max(ending.completedAt, job.admittedAt);
    this.#stores.end(job, endOf(charge, ending.status, endedAt), now);
  }

  /** What an address's meter tells its network's. */
  endShare(admission: string, { charged, assumed, endedAt }: ShareEnd, now: number): void {
    const job = this.#stores.jobs.find(admission);
    if (!job) return;
    const end = { status: "COMPLETED", charged, assumed, endedAt: Math.max(endedAt, job.admittedAt) } as const;
    this.#stores.transaction(() => this.#stores.end(job, end, now));
  }

  notify(admission: string, body: string | Uint8Array, now: number): void {
    const known = this.#stores.jobs.find(admission);
    if (!known || known.webhook === null || known.noticed === 1) return;
    if (known.assumed === 1) this.#bindings.handOut(admission, outputOf(textOf(body)), now);
    /** An ended row is read anew: its charge may have been raised. */
    const job = this.#stores.jobs.find(admission) ?? known;
    const { webhook } = known;
    this.#stores.transaction(() => {
      this.#stores.outbox.add(admission, webhook, body, now);
      this.#stores.debts.pay(admission, "webhook");
      this.#stores.jobs.update(job, { noticed: 1 });
    });
  }

  /** The upstream does not know the job, or knows it no more. What a notice alone named was never known to be this job. */
  forget({ admission, upstreamId }: Binding, now: number): void {
    const job = this.#stores.jobs.findOpen(admission);
    /** The relay may have named the true one meanwhile. */
    if (!job || job.upstreamId !== upstreamId) return;
    if (isNamed(job)) this.assume(admission, now);
    else
      this.#stores.single(() =>
        this.#stores.jobs.update(job, { upstreamId: null, noticeAt: null, dueAt: job.expiresAt }),
      );
  }

  /** Of a job that made something the books do not say what. */
  lastWord(admission: string): string | undefined {
    const named = this.#stores.jobs.find(admission);
    const status = named && this.#chain.newestOf(named)?.status;
    return status && status !== "COMPLETED" ? JSON.stringify({ status }) : undefined;
  }

  /** Nobody will ever learn of its end. */
  assume(admission: string, now: number): void {
    const job = this.#stores.jobs.findOpen(admission);
    if (job) this.#stores.transaction(() => this.#assume(job, now));
  }

  #assume(job: Job, now: number): void {
    log(job, "no answer: its end is assumed");
    const charge = this.#isPaidElsewhere(job) ? nothingMore : assumedCharge(job);
    // A truth that comes later is told under the first admission, and must find the one that is charged.
    if (charge.microUsd > 0 && isDoubtfulRetry(job)) this.#chain.accept(job, now);
    this.#stores.end(job, endOf(charge, "TIMED_OUT", Math.max(now, job.admittedAt)), now);
  }

  /** Nobody knows whether the upstream ran the job again; another of its chain is charged for it, or will be. */
  #isPaidElsewhere(job: Job): boolean {
    return isDoubtfulRetry(job) && this.#chain.before(job).some((older) => older.endedAt === null || older.charged > 0);
  }

  /** Before anything is read or admitted: what is over holds no place, also where the alarm is late. */
  endOverdue(now: number): void {
    const over = this.#stores.jobs.expired(now).filter((job) => !isAsked(job) || job.expiresAt + lastAnswerMs <= now);
    if (over.length === 0) return;
    this.#stores.transaction(() => {
      for (const job of over) this.#assume(job, now);
    });
    this.#unasked.push(...over.filter(isAsked));
  }

  get areUnasked(): boolean {
    return this.#unasked.length > 0;
  }

  /** Jobs to ask about, their next question put off; those that nobody can be asked about end. Within a transaction. */
  claimDue(now: number, count: number): Job[] {
    const asked = this.#unasked.splice(0, count);
    for (const job of this.#stores.jobs.due(now)) {
      if (!isAsked(job)) {
        if (job.expiresAt <= now) this.#assume(job, now);
        else this.#stores.jobs.update(job, { dueAt: Math.min(dueAt(job, now), job.expiresAt) });
      } else if (asked.length < count) {
        asked.push(job);
        this.#stores.jobs.update(job, { dueAt: job.expiresAt <= now ? now + lastAnswerMs : dueAt(job, now) });
      }
    }
    return asked;
  }
}

/** Whose end the upstream may tell: one whose id is known. */
function isAsked(job: Job): boolean {
  return job.upstreamId !== null && !isShare(job);
}

/** By the relay, or as the job that it runs again. */
function isNamed({ boundAt, retryOf }: Job): boolean {
  return boundAt !== null || retryOf !== null;
}

function isDoubtfulRetry({ boundAt, retryOf }: Job): boolean {
  return boundAt === null && retryOf !== null;
}

const nothingMore: Charge = { microUsd: 0, assumed: true };

/** What a notice named before the relay did, and the relay named another one. */
function isOfAnother({ boundAt, upstreamId }: Job, ending: Ending): boolean {
  return ending.isUnproven === true && boundAt !== null && upstreamId !== ending.upstreamId;
}

/** What was asked before a retry was accepted says nothing of the retry. */
function isStale({ retryOf, boundAt }: Job, { askedAt }: Ending): boolean {
  return retryOf !== null && boundAt !== null && askedAt < boundAt;
}

/** Nothing of it is news. */
function isSettled(job: Job, { status, media = [] }: Ending): boolean {
  if (media.length > 0 || job.boundAt === null || job.guessed === 1) return false;
  return job.endedAt === null ? job.seen === status : job.assumed === 0;
}

/** A webhook hands out what a job made before it came to no good end, as a status does. */
function outputOf(body: string): HandedOut {
  const { output } = JSON.parse(body) as { readonly output?: unknown };
  const pieces = Array.isArray(output) ? output.length : 1;
  const handed =
    output === undefined || output === null ? { pieces: 0, textBytes: 0 } : { pieces, textBytes: bytesOfText(output) };
  return { upstreamId: null, ...handed, whole: true };
}

function endOf({ microUsd, assumed }: Charge, status: End["status"], endedAt: number): End {
  return { status, charged: microUsd, assumed: assumed ? 1 : 0, endedAt };
}

const noCost = "no cost in the answer: it is assumed";
/** A notice is not believed: the job that it names may be another one. */
const onlyNoticed = "only a notice named this job: what it cost is marked as assumed";

function log({ admission, model }: Job, problem: string): void {
  console.warn(JSON.stringify({ meter: admission, model, problem }));
}

function textOf(body: string | Uint8Array): string {
  return typeof body === "string" ? body : new TextDecoder().decode(body);
}
