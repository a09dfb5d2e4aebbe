// What is learned of an admission between its start and its end: the upstream's id, a doubt, text that was handed out.
import { Chain } from "./chain.ts";
import { handedOutPrice } from "./charge.ts";
import { mayBeRetried } from "./ending-rules.ts";
import type { Job } from "./job.ts";
import { dueAt, expiresAt } from "./job-timing.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { Binding, HandedOut } from "./metering.ts";
import { oweWebhook } from "./webhook-debt.ts";

export class Bindings {
  readonly #stores: MeterStores;
  readonly #chain: Chain;

  constructor(stores: MeterStores) {
    this.#stores = stores;
    this.#chain = new Chain(stores);
  }

  /**
   * Notes the upstream's id. The first id that the relay tells counts; one that only a notice has told is replaced by
   * it.
   */
  bind({ admission, upstreamId }: Binding, now: number): void {
    const job = this.#stores.jobs.find(admission);
    if (!job || isOfAnother(job, upstreamId)) return;
    if (job.guessed === 1) this.#stores.transaction(() => this.#prove(job, upstreamId, now));
    if (job.boundAt !== null) {
      this.#acceptEnded(job, now);
      return;
    }
    const isAlone = job.idempotencyKey === null && job.retryOf === null && job.endedAt === null;
    if (isAlone) this.#stores.single(() => this.#bind(job, upstreamId, now));
    else this.#stores.transaction(() => this.#bindAtLast(job, upstreamId, now));
  }

  /** What ended the retry before the relay told that it was accepted may have been the end of the run before it. */
  #acceptEnded(job: Job, now: number): void {
    if (job.retryOf === null || !mayBeRetried(job.status) || this.#stores.debts.owes(job.admission, "untold")) return;
    this.#stores.transaction(() => this.#askForEnd(job, now));
  }

  #bindAtLast(job: Job, upstreamId: string, now: number): void {
    this.#bind(job, upstreamId, now);
    this.#askForEnd(job, now);
  }

  /** An end that came before the relay's word was assumed, or was not the job's: the upstream is asked for the true one. */
  #askForEnd({ admission, endedAt }: Job, now: number): void {
    if (endedAt !== null) this.#stores.debts.owe(admission, "untold", now, now);
  }

  #bind(job: Job, upstreamId: string, now: number): void {
    this.#bindRow(job, upstreamId, now);
    this.#bindKey(job, upstreamId);
  }

  #bindRow(job: Job, upstreamId: string, now: number): void {
    const bound = { ...job, boundAt: now, doubtedAt: null };
    const due = Math.min(dueAt(bound, now), job.doubtedAt === null && job.dueAt > now ? job.dueAt : Infinity);
    const change = { upstreamId, boundAt: now, expiresAt: expiresAt(bound, now) };
    /** Most jobs keep the due time that they were admitted with. */
    const isDueAnew = due !== job.dueAt || job.doubtedAt !== null;
    this.#stores.jobs.update(job, isDueAnew ? { ...change, dueAt: due, doubtedAt: null } : change);
    if (job.retryOf !== null) this.#chain.accept(job, now);
    if (job.endedAt !== null && job.noticed === 0) oweWebhook(this.#stores, job, now);
  }

  #bindKey({ owner, idempotencyKey, admission }: Job, upstreamId: string): void {
    if (idempotencyKey !== null) this.#stores.idempotency.bind(owner, idempotencyKey, admission, upstreamId);
  }

  /**
   * The relay confirms an id that only a notice had told. An end seen under that id was booked as assumed and its
   * output was not kept: now it is fetched again.
   */
  #prove(job: Job, upstreamId: string, now: number): void {
    this.#stores.jobs.update(job, { upstreamId, guessed: 0 });
    this.#bindKey(job, upstreamId);
    this.#askForEnd(job, now);
  }

  /** Within a transaction that is under way. */
  bindWithin(job: Job, upstreamId: string, now: number): void {
    if (isOfAnother(job, upstreamId)) return;
    if (job.guessed === 1) this.#prove(job, upstreamId, now);
    else if (job.boundAt === null) this.#bind(job, upstreamId, now);
  }

  /** It may be another user's job, to which no key must lead. */
  guessWithin(job: Job, upstreamId: string, now: number): void {
    if (job.boundAt !== null || isOfAnother(job, upstreamId)) return;
    this.#bindRow(job, upstreamId, now);
    this.#stores.jobs.update(job, { guessed: 1 });
  }

  /**
   * A notice said that the job ended, but the upstream does not say so yet: the alarm asks again soon. If the job's id
   * is not known yet, the alarm asks about the notice's id, unless the relay tells the true one first.
   */
  lookAgain({ admission, upstreamId }: Binding, now: number): void {
    const named = this.#stores.jobs.find(admission);
    const job = named && this.#chain.newestOf(named);
    if (!job || job.endedAt !== null || isOfAnother(job, upstreamId)) return;
    const soon = dueAt({ ...job, noticeAt: now }, now);
    /** However often it is called: a question that is due stays due. */
    const looked = { noticeAt: now, dueAt: Math.min(soon, Math.max(job.dueAt, now)) };
    const change = job.boundAt === null ? { ...looked, upstreamId } : looked;
    this.#stores.single(() => this.#stores.jobs.update(job, change));
  }

  /** Its place is free at once, its money when it expires. */
  doubt(admission: string, now: number): void {
    const job = this.#stores.jobs.findOpen(admission);
    if (!job || job.boundAt !== null || job.doubtedAt !== null) return;
    const expiry = expiresAt({ ...job, doubtedAt: now }, now);
    const change = { place: 0, doubtedAt: now, expiresAt: expiry, dueAt: expiry } as const;
    this.#stores.single(() => this.#stores.change(job, () => this.#stores.jobs.update(job, change)));
  }

  /** Adds text that the caller was given. If the job has ended with an assumed charge, that charge is raised. */
  handOut(admission: string, { upstreamId, pieces, textBytes, whole }: HandedOut, now: number): void {
    const named = this.#stores.jobs.find(admission);
    const job = named && this.#chain.newestOf(named);
    if (!job || job.operation === "joined") return;
    if (job.upstreamId !== null && upstreamId !== null && job.upstreamId !== upstreamId) return;
    const handed = whole
      ? { pieces: Math.max(job.pieces, pieces), textBytes: Math.max(job.textBytes, textBytes) }
      : { pieces: job.pieces + pieces, textBytes: job.textBytes + textBytes };
    if (handed.pieces === job.pieces && handed.textBytes === job.textBytes) return;
    if (job.endedAt === null) this.#stores.single(() => this.#stores.jobs.update(job, handed));
    else if (job.assumed === 1 && (job.status === "CANCELLED" || job.status === "TIMED_OUT")) {
      this.#stores.transaction(() => this.#raise(job, handed, now));
    }
  }

  #raise(job: Job, handed: Pick<Job, "pieces" | "textBytes">, now: number): void {
    this.#stores.jobs.update(job, handed);
    const { status, endedAt, charged } = job;
    if (status === null || endedAt === null) return;
    const price = Math.max(charged, handedOutPrice(job));
    this.#stores.end(job, { status, charged: price, assumed: 1, endedAt }, now);
  }
}

/** A retry runs the upstream job that it was admitted for: any other id is wrong. */
function isOfAnother({ retryOf, upstreamId }: Job, named: string): boolean {
  return retryOf !== null && upstreamId !== named;
}
