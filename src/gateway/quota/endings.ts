// How jobs end at a payer's meter. Each ends once: by the first call that tells its end, or by an assumption if none
// does (`open-jobs.ts`).
import { isFinal } from "../../contract/states.ts";
import type { Bindings } from "./bindings.ts";
import { Chain } from "./chain.ts";
import { correctedEnd, firstEnd } from "./charged-end.ts";
import {
  endsAlone,
  idOf,
  isAskedNearAcceptance,
  isAssumedToBeOver,
  isBefore,
  isDoubtfulRetry,
  isOfAnother,
  isOfEarlierRun,
  mayBeRetried,
  mayReplace,
  saysNothingNew,
  type Taken,
  wasOfEarlierRun,
} from "./ending-rules.ts";
import type { Job } from "./job.ts";
import { dueAt, expiresAt } from "./job-timing.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { Ending, HandedOut, KnownEnd, Settled } from "./metering.ts";
import type { ShareEnd } from "./network-ends.ts";
import { bytesOfText } from "./text-bytes.ts";
import { bringWebhook } from "./webhook-debt.ts";

export class Endings {
  readonly #stores: MeterStores;
  readonly #bindings: Bindings;
  readonly #chain: Chain;

  constructor(stores: MeterStores, bindings: Bindings) {
    this.#stores = stores;
    this.#bindings = bindings;
    this.#chain = new Chain(stores);
  }

  /**
   * Removes an admission that the upstream never had, even if it was already assumed to be lost: a slow upload may
   * outlast that deadline. An accepted retry stays, since it carries the cost of earlier runs. False if the admission
   * is unknown.
   */
  release(admission: string, now: number): boolean {
    const job = this.#stores.jobs.find(admission);
    const isLost = job?.assumed === 1 && job.boundAt === null;
    const hasTakenOver = job?.retryOf != null && job.boundAt !== null;
    if (job && !hasTakenOver && (job.endedAt === null || isLost))
      this.#stores.transaction(() => this.#stores.remove(job, now));
    return job !== undefined;
  }

  settle(told: Ending, now: number): Settled {
    const named = this.#stores.jobs.find(told.admission);
    const job = named && this.#settledBy(named, told, now);
    if (!job) return this.#unchanged(named, told);
    const ending = this.#taken(job, told);
    if (this.#isOfEarlierRun(job, ending, now)) return this.#notTaken(job, ending);
    const isUntold = ending.isUntold === true || isAskedNearAcceptance(job, ending);
    if (!isUntold) this.#toldOf(job, ending);
    if (saysNothingNew(job, ending) || isOfAnother(job, ending)) return this.#unchanged(job, ending);
    if (endsAlone(job, ending)) {
      this.#stores.endAlone(job, firstEnd(job, ending), now);
      return { ...this.#unchanged(job, ending), first: true };
    }
    const mayBeOfEarlierRun = this.#mayBeOfEarlierRun(job, ending);
    return this.#stores.transaction(() => {
      const wasOpen = job.endedAt === null;
      const upstreamId = idOf(job, ending);
      /** A failure costs nothing, so that no two runs are charged where the upstream has refused the retry. */
      const isRefused = ending.status === "FAILED" && mayBeOfEarlierRun;
      if (upstreamId !== null && !isRefused) {
        if (ending.isUnproven) this.#bindings.guessWithin(job, upstreamId, now);
        else this.#bindings.bindWithin(job, upstreamId, now);
      }
      if (isFinal(ending.status)) this.#settle(job, ending, now);
      else if (job.endedAt === null) {
        this.#goesOn(job, { seen: ending.status, seenAt: ending.askedAt }, now);
        /** Nothing is asked about it, and so nothing else is told of it. */
        if (job.boundAt === null && job.network !== null)
          this.#stores.networkEnds.goesOn(job.admission, job.network, now);
      }
      for (const { key, media } of ending.media ?? []) this.#stores.gallery.add(job.owner, { ...media, key }, now);
      if (isUntold && job.endedAt !== null)
        this.#stores.debts.owe(job.admission, "untold", now, ending.isUntold ? now + job.retentionMs / 2 : now);
      const settled = { ...this.#unchanged(job, ending), first: wasOpen && job.endedAt !== null };
      /** The retry may be accepted after all: its webhook is owed, and asks for the end by itself a little later. */
      return mayBeOfEarlierRun ? { ...settled, wantsNotice: false } : settled;
    });
  }

  #taken<E extends Pick<Ending, "status" | "askedAt">>(job: Job, ending: E): E & Pick<Taken, "replaces"> {
    const replaces = mayReplace(job, ending) && this.#stores.debts.owes(job.admission, "untold");
    return replaces ? { ...ending, replaces } : ending;
  }

  /** The owner has seen the end, or its result is kept: the `untold` debt is paid. */
  #toldOf({ admission }: Job, { status }: Ending): void {
    const { debts } = this.#stores;
    if (isFinal(status) && debts.owes(admission, "untold"))
      this.#stores.transaction(() => debts.pay(admission, "untold"));
  }

  #unchanged(job: Job | undefined, ending: Ending): Settled {
    const { admission, status, isUnproven } = ending;
    return {
      admission: job?.admission ?? admission,
      first: false,
      chargedMicroUsd: job?.charged ?? 0,
      isAssumed: job?.assumed === 1,
      isOver: job !== undefined && job.endedAt !== null && !isAskedNearAcceptance(job, ending),
      wantsNotice: !isUnproven && isFinal(status) && job?.endedAt != null && job.webhook !== null && job.noticed === 0,
    };
  }

  /** The retry has not ended so, or may not have: nothing of it is kept, told or delivered by this answer. */
  #notTaken(job: Job, ending: Ending): Settled {
    return { ...this.#unchanged(job, ending), isOver: false, wantsNotice: false };
  }

  /**
   * The admission that an answer settles: the newest of the chain. If that one has ended and the answer shows another
   * status, the job was retried since, although the meter was not told that the retry was accepted. Then the answer is
   * of that retry.
   */
  #settledBy(named: Job, { status, askedAt }: Pick<Ending, "status" | "askedAt">, now: number): Job | undefined {
    const newest = this.#chain.newestOf(named);
    if (!newest || newest.status === null || newest.status === status) return newest;
    if (mayBeRetried(status) && isAssumedToBeOver(newest)) return newest;
    const retry = this.#stores.jobs.findUnboundRetryOf(named.admission, newest.turn);
    return retry && !isBefore(askedAt, retry.admittedAt, now) ? retry : newest;
  }

  /** Nothing that such an answer says counts for the job. */
  #isOfEarlierRun(job: Job, ending: Pick<Taken, "status" | "askedAt" | "replaces">, now: number): boolean {
    /** The retry's request may still be under way. At its expiry the end counts, since nobody will tell more of it. */
    const isWaited = job.endedAt === null && now < job.expiresAt;
    return isOfEarlierRun(job, ending, now) || (isWaited && this.#mayBeOfEarlierRun(job, ending));
  }

  /**
   * Whether the end of a retry may be that of the run before it, seen again: nobody has told that the upstream accepted
   * the retry. It cannot be if the run before is known to have ended otherwise.
   */
  #mayBeOfEarlierRun(job: Job, { status }: Pick<Ending, "status">): boolean {
    if (!isDoubtfulRetry(job) || !mayBeRetried(status)) return false;
    const before = this.#chain.before(job).at(-1);
    return !before || before.status === null || before.status === status;
  }

  /** What has no id here is held for longer by it: a call that streams its answer, or a network's share. */
  #goesOn(job: Job, seen: Pick<Job, "seen" | "seenAt">, now: number): void {
    const timed = { ...job, ...seen };
    const held = job.boundAt === null && { expiresAt: expiresAt(timed, now), dueAt: dueAt(timed, now) };
    this.#stores.jobs.update(job, { ...seen, ...held });
  }

  #settle(job: Job, ending: Taken, now: number): void {
    if (job.noticed === 1 && wasOfEarlierRun(job, ending)) this.#noticeAgain(job);
    const end = job.endedAt === null ? firstEnd(job, ending) : correctedEnd(job, ending);
    if (end) this.#stores.end(job, end, now);
  }

  /** A webhook has told an earlier run's end as the retry's, or is about to: it tells this one. */
  #noticeAgain(job: Job): void {
    this.#stores.outbox.drop(job.admission);
    this.#stores.jobs.update(job, { noticed: 0 });
  }

  /** Called in the meter of a /48: the job of one of its addresses goes on. */
  prolongShare(admission: string, now: number): void {
    const job = this.#stores.jobs.find(admission);
    if (!job) return;
    const goesOn = () => this.#goesOn(job, { seen: "IN_PROGRESS", seenAt: now }, now);
    if (job.endedAt === null) this.#stores.single(goesOn);
    else if (job.status === "TIMED_OUT") {
      /** An end that was told is COMPLETED: this one was assumed, and so the job counts again. */
      this.#stores.transaction(() => {
        this.#stores.reviveShare(job);
        goesOn();
      });
    }
  }

  /** Called in the meter of a /48: the job of one of its addresses has ended. */
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
      this.#stores.jobs.update(job, { noticed: 1 });
      bringWebhook(this.#stores, { ...job, webhook }, body, now);
    });
  }

  lastWord(admission: string): Pick<KnownEnd, "status" | "newest"> {
    const named = this.#stores.jobs.find(admission);
    const { status, admission: newest } = (named && this.#chain.newestOf(named)) ?? {};
    return { status: status ?? undefined, newest };
  }

  /**
   * The last of the job and its retries that the upstream is known to have accepted. Once it is another one, what the
   * upstream was asked before is of an earlier run.
   */
  lastAccepted(admission: string): string | undefined {
    const named = this.#stores.jobs.find(admission);
    if (!named) return undefined;
    const last = isDoubtfulRetry(named) ? this.#chain.before(named).at(-1) : this.#chain.newestOf(named);
    return last?.admission;
  }

  /**
   * The admission that an answer is of: the job's own, or a retry's. Where it may be of either, it is kept as the first
   * one's, so that it never hides what the retry makes. Undefined for an answer of an earlier run.
   */
  runOf(ending: Pick<Ending, "admission" | "status" | "askedAt">, now: number): string | undefined {
    const named = this.#stores.jobs.find(ending.admission);
    const job = named && this.#settledBy(named, ending, now);
    if (!job) return ending.admission;
    if (this.#isOfEarlierRun(job, this.#taken(job, ending), now)) return undefined;
    return this.#mayBeOfEarlierRun(job, ending) ? this.#chain.firstOf(job.admission) : job.admission;
  }
}

/** The output in a webhook's body: it is handed out to the client, just as a status answer is. */
function outputOf(body: string): HandedOut {
  const { output } = JSON.parse(body) as { readonly output?: unknown };
  const pieces = Array.isArray(output) ? output.length : 1;
  const handed =
    output === undefined || output === null ? { pieces: 0, textBytes: 0 } : { pieces, textBytes: bytesOfText(output) };
  return { upstreamId: null, ...handed, whole: true };
}

function textOf(body: string | Uint8Array): string {
  return typeof body === "string" ? body : new TextDecoder().decode(body);
}
