// A payer's meter at work: every call is one synchronous turn over storage, so it happens whole or not at all.
import { isFinal, type JobState } from "../../contract/states.ts";
import { type AccountSettings, Settings } from "./account-settings.ts";
import { decide, neededOf, type Standing } from "./decide.ts";
import { Gallery } from "./gallery.ts";
import { Idempotency } from "./idempotency.ts";
import { Leases } from "./leases.ts";
import { describeJob, type JobRow, joinedOperation, MeteredJobs, type NewJob } from "./metered-jobs.ts";
import type { AdmitAnswer, AdmitRequest, Ending, MeteredJob, Settled } from "./metering.ts";
import { Outbox } from "./outbox.ts";
import { dayOf, daysOf } from "./periods.ts";
import { rateLimitFields } from "./rate-limit-fields.ts";
import { RequestWindows } from "./request-windows.ts";
import { assumeCharge, type Charge, chargeOf, isFarOff } from "./settlement.ts";
import { payersAccount, Spending } from "./spending.ts";
import { type Account, covers, scopeOf, standingsOf } from "./standings.ts";

/** Whose rules count: what the token claims, and what it narrows. */
export type Claims = Pick<AdmitRequest, "plan" | "plans" | "token">;

/** The request passes every rule, and the app's budget must be asked before it is admitted. */
export const needsLease = Symbol("needs a lease");

/** Another admission pays. */
const freeRide: Charge = { microUsd: 0, assumed: false };
const notThere: Settled = { first: false, chargedMicroUsd: 0, wantsNotice: false };
/** As many overdue reservations as one admit settles, where the alarm is late. */
const expireAtOnce = 4;

interface Stores {
  readonly windows: RequestWindows;
  readonly spending: Spending;
  readonly jobs: MeteredJobs;
  readonly idempotency: Idempotency;
  readonly outbox: Outbox;
  readonly settings: Settings;
  readonly leases: Leases;
  readonly gallery: Gallery;
}

export class Meter {
  readonly #storage: DurableObjectStorage;
  #stores: Stores;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#stores = open(storage.sql);
  }

  get jobs(): MeteredJobs {
    return this.#stores.jobs;
  }
  get outbox(): Outbox {
    return this.#stores.outbox;
  }
  get gallery(): Gallery {
    return this.#stores.gallery;
  }
  get leases(): Leases {
    return this.#stores.leases;
  }
  get settings(): Settings {
    return this.#stores.settings;
  }
  get spending(): Spending {
    return this.#stores.spending;
  }

  /** All or nothing: what memory knows goes back as well. */
  transaction<T>(work: () => T): T {
    try {
      return this.#storage.transactionSync(work);
    } catch (error) {
      this.#stores = open(this.#storage.sql);
      throw error;
    }
  }

  admit(request: AdmitRequest, now: number): AdmitAnswer | typeof needsLease {
    return this.transaction(() => {
      this.#expireOverdue(now);
      return this.#refuseOrReplay(request, now) ?? this.#admitByRules(request, now);
    });
  }

  #refuseOrReplay(request: AdmitRequest, now: number): AdmitAnswer | undefined {
    const { owner, bearer, idempotency } = request;
    if (this.settings.isRevoked(owner, bearer)) {
      return { admitted: false, code: "TOKEN_REVOKED", detail: "The token was revoked." };
    }
    const row = idempotency && this.#stores.idempotency.find(owner, idempotency.key, now);
    if (!row || row.admission === request.admission) return undefined;
    if (row.fingerprint !== idempotency.fingerprint) {
      const detail = "This Idempotency-Key was used for another request.";
      return { admitted: false, code: "IDEMPOTENCY_MISMATCH", detail };
    }
    if (row.ref !== null) return { admitted: false, replay: { admission: row.admission, ref: row.ref } };
    const detail = "The request with this Idempotency-Key is still being submitted.";
    return { admitted: false, code: "IN_PROGRESS", detail, retryAfterSeconds: 1 };
  }

  #admitByRules(request: AdmitRequest, now: number): AdmitAnswer | typeof needsLease {
    const accounts = this.#accounts(request, now);
    const standings = accounts.flatMap((account) => standingsOf(account, this.#stores, request, now));
    /** The relay asks twice where the first answer was lost. */
    if (this.jobs.find(request.admission)) return { admitted: true, quota: rateLimitFields(standings, now) };
    const verdict = decide(standings, request, now);
    if (!verdict.allowed) {
      const { code, detail, retryAfterSeconds } = verdict;
      const quota = rateLimitFields(standings, now);
      return { admitted: false, code, detail, quota, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
    }
    const today = dayOf(now);
    const consumed = this.spending.consumed(today);
    const { reserveMicroUsd } = request;
    if (reserveMicroUsd > 0 && !this.leases.covers(today, consumed, reserveMicroUsd, now)) return needsLease;
    this.#count(request, accounts, now);
    return { admitted: true, quota: rateLimitFields(standings.map(afterOne(request)), now) };
  }

  #accounts({ plan, plans, token }: Claims, now: number): Account[] {
    const { settings } = this.#stores;
    const payers = { id: payersAccount, rules: settings.rules(plan, plans), granted: settings.granted(now) };
    if (!token) return [payers];
    const { id, rules, maxCostMicroUsd } = token;
    return [payers, { id, rules, maxCostMicroUsd }];
  }

  #count(request: AdmitRequest, accounts: readonly Account[], now: number): void {
    const { admission, owner, model, kind, operation, token, reserveMicroUsd, idempotency, webhook } = request;
    const { ttlMs, retentionMs } = request;
    for (const { id, rules } of accounts) {
      const scopes = rules.flatMap((rule) =>
        rule.unit === "requests" && covers(rule, model, kind) ? [{ per: rule.per, scope: scopeOf(rule) }] : [],
      );
      const counted = new Map(scopes.map((counter) => [`${counter.per} ${counter.scope}`, counter]));
      for (const { per, scope } of counted.values()) this.#stores.windows.add(id, per, scope, now);
    }
    this.jobs.add({
      ...{ admission, owner, account: token?.id ?? payersAccount, model, kind: kind ?? "" },
      operation: request.joined ? joinedOperation : operation,
      ...{ reserved: reserveMicroUsd, admittedAt: now, ttlMs, retentionMs, webhook: webhook ?? null },
      idempotencyKey: idempotency?.key ?? null,
    });
    if (idempotency) {
      const { key, fingerprint } = idempotency;
      this.#stores.idempotency.add(owner, key, { fingerprint, admission }, now);
    }
    this.#spend({ account: token?.id ?? payersAccount, model, kind: kind ?? "", admittedAt: now }, now, {
      reserved: reserveMicroUsd,
    });
  }

  bind(admission: string, ref: string, now: number): void {
    this.transaction(() => {
      const job = this.jobs.find(admission);
      if (job) this.#bind(job, ref, now);
    });
  }

  #bind(job: JobRow, ref: string, now: number): void {
    this.jobs.bind(job, ref, now);
    if (job.idempotencyKey !== null) this.#stores.idempotency.bind(job.owner, job.idempotencyKey, job.admission, ref);
  }

  release(admission: string, now: number): void {
    this.transaction(() => {
      const job = this.jobs.find(admission);
      if (!job || job.endedAt !== null) return;
      this.#spend(job, now, { reserved: -job.reserved });
      this.jobs.remove(job);
      this.#freeKey(job);
    });
  }

  settle(ending: Ending, now: number): Settled {
    return this.transaction(() => {
      const job = this.#settledBy(ending);
      if (!job) return notThere;
      if (!isFinal(ending.status)) this.#see(job, ending.status);
      else this.#settle(job, ending, now);
      for (const { key, media } of ending.media ?? []) this.gallery.add(job.owner, { ...media, key }, now);
      const after = this.jobs.find(job.admission) ?? job;
      const wantsNotice = isFinal(ending.status) && after.webhook !== null;
      const first = job.endedAt === null && after.endedAt !== null;
      return { first, chargedMicroUsd: after.charged, wantsNotice };
    });
  }

  #settledBy({ admission, ref }: Ending): JobRow | undefined {
    const named = this.jobs.find(admission);
    if (named?.operation === joinedOperation) return named;
    return (named && ref !== null && this.jobs.findByRef(named.owner, ref)) || named;
  }

  #see(job: JobRow, status: JobState): void {
    if (job.endedAt === null) this.jobs.see(job, status);
  }

  #settle(found: JobRow, ending: Ending, now: number): void {
    if (found.ref === null && ending.ref !== null) this.#bind(found, ending.ref, now);
    const job = this.jobs.find(found.admission) ?? found;
    if (job.endedAt !== null && !job.assumed) return;
    const joined = job.operation === joinedOperation;
    const charge = joined ? freeRide : chargeOf(ending.status, ending.costMicroUsd, job.reserved);
    /** An assumption is corrected by a truth, not by another assumption. */
    if (job.endedAt !== null && charge.assumed) return;
    if (charge.assumed && ending.status === "COMPLETED") log(job, "no cost in the answer: the reservation counts");
    if (isFarOff(charge, job.reserved)) log(job, `costs ${charge.microUsd}, ${job.reserved} were reserved`);
    /** The handle of a first admission may tell of a failure that a retry has behind it. */
    const stale = job.admission !== ending.admission && charge.microUsd === 0;
    this.#end(job, ending.status, { ...charge, assumed: charge.assumed || stale }, ending.completedAt, now);
  }

  /** The one way that a job ends; the truth about one that was assumed comes through here again. */
  #end(job: JobRow, status: JobState, charge: Charge, endedAt: number, now: number): void {
    const { microUsd, assumed } = charge;
    const before = job.endedAt === null ? { reserved: -job.reserved } : { assumed: -job.charged };
    this.#spend(job, now, before, assumed ? { assumed: microUsd } : { known: microUsd });
    this.jobs.end(job, { status, charged: microUsd, assumed, endedAt });
    if (job.ref === null) this.#freeKey(job);
  }

  #spend(
    { account, model, kind, admittedAt }: Pick<NewJob, "account" | "model" | "kind" | "admittedAt">,
    now: number,
    ...changes: Partial<Record<"known" | "assumed" | "reserved", number>>[]
  ): void {
    const change = { known: 0, assumed: 0, reserved: 0 };
    for (const one of changes) {
      change.known += one.known ?? 0;
      change.assumed += one.assumed ?? 0;
      change.reserved += one.reserved ?? 0;
    }
    if (change.known === 0 && change.assumed === 0 && change.reserved === 0) return;
    const day = dayOf(admittedAt);
    for (const id of new Set([payersAccount, account])) {
      this.spending.add({ account: id, day, model, kind: kind || undefined }, change);
    }
    this.leases.owe(day, now);
  }

  #freeKey({ owner, idempotencyKey, admission }: JobRow): void {
    if (idempotencyKey !== null) this.#stores.idempotency.free(owner, idempotencyKey, admission);
  }

  notify(admission: string, body: string, now: number): void {
    this.transaction(() => {
      const job = this.jobs.find(admission);
      if (!job || job.webhook === null) return;
      this.outbox.add(admission, job.webhook, body, now);
      this.jobs.noticed(admission);
    });
  }

  /** The upstream does not know the job any more, or nobody ever learned of it. */
  assume(admission: string, now: number): void {
    this.transaction(() => {
      const job = this.jobs.find(admission);
      if (job && job.endedAt === null) this.#assume(job, now);
    });
  }

  #assume(job: JobRow, now: number): void {
    log(job, "no answer: what was reserved is assumed, or nothing where it never started");
    this.#end(job, "TIMED_OUT", assumeCharge(job.seen, job.reserved), now, now);
  }

  #expireOverdue(now: number): void {
    for (const job of this.jobs.due(now, expireAtOnce)) if (job.expiresAt <= now) this.#assume(job, now);
  }

  /** Jobs to ask about, their next question put off; those that expired are settled. */
  claimDue(now: number, count: number): JobRow[] {
    return this.transaction(() => {
      const due = this.jobs.due(now, tickSize);
      const overdue = due.filter((job) => job.expiresAt <= now || job.ref === null);
      for (const job of overdue) this.#assume(job, now);
      const ask = due.filter((job) => job.expiresAt > now && job.ref !== null).slice(0, count);
      for (const job of ask) this.jobs.postpone(job, now);
      return ask;
    });
  }

  prune(now: number): void {
    this.transaction(() => {
      this.#stores.windows.prune(now);
      this.#stores.idempotency.prune(now);
      this.spending.prune(dayOf(now));
      this.leases.prune(dayOf(now));
    });
  }

  nextDue(): number | undefined {
    const times = [this.jobs.nextDue(), this.outbox.nextDue(), this.leases.nextDue()];
    const known = times.filter((time) => time !== undefined);
    return known.length > 0 ? Math.min(...known) : undefined;
  }

  standings(claims: Claims, now: number): Standing[] {
    return this.#accounts(claims, now).flatMap((account) => standingsOf(account, this.#stores, undefined, now));
  }

  configure(settings: AccountSettings, now: number): void {
    this.transaction(() => this.settings.change(settings, now));
  }

  /** The rules begin anew; what is reserved, and what was spent in truth, stays. */
  reset(now: number): void {
    this.transaction(() => {
      this.#stores.windows.reset(payersAccount);
      this.spending.reset(daysOf("month", now));
    });
  }

  job(admission: string): MeteredJob | undefined {
    const job = this.jobs.find(admission);
    return job && describeJob(job);
  }
}

/** How many overdue jobs one alarm handles before it makes room for calls. */
const tickSize = 100;

function open(sql: SqlStorage): Stores {
  return {
    windows: new RequestWindows(sql),
    spending: new Spending(sql),
    jobs: new MeteredJobs(sql),
    idempotency: new Idempotency(sql),
    outbox: new Outbox(sql),
    settings: new Settings(sql),
    leases: new Leases(sql),
    gallery: new Gallery(sql),
  };
}

function afterOne(request: AdmitRequest): (standing: Standing) => Standing {
  return (standing) => ({ ...standing, used: standing.used + neededOf(standing, request) });
}

function log({ admission, model }: JobRow, problem: string): void {
  console.warn(JSON.stringify({ meter: admission, model, problem }));
}
