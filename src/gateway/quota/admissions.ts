// How a payer's meter admits: revocation, idempotency, rules, the app's budget, and the reservation, in one turn.

import { tenfold } from "../operator-settings/plans.ts";
import { type Account, payersAccount, windowKey } from "./account.ts";
import { requireAmounts } from "./amounts.ts";
import { appliedRules, type RuleTarget } from "./applied-rules.ts";
import { Chain } from "./chain.ts";
import { writeKeys } from "./counters.ts";
import { decide, neededOf, type RuleUsage, timesAdmitted } from "./decide.ts";
import { type Job, type JobOperation, notEnded } from "./job.ts";
import { expiresAt, firstDueAt } from "./job-timing.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { AdmitAnswer, AdmitRequest, Amendment, Claims, Hit, HitAnswer, Refusal } from "./metering.ts";
import { dayOf } from "./periods.ts";
import { rateLimitFields } from "./rate-limit-fields.ts";
import { type Subject, usagesOf } from "./rule-usage.ts";
import type { UploadRequest } from "./upload-calls.ts";

/** The request passes every rule here, and the meter of the caller's network must be asked before it is admitted. */
export const needsNetwork = Symbol("needs its network");
/** The same of the app's budget, which is asked last. */
export const needsLease = Symbol("needs a lease");
export type Verdict = AdmitAnswer | typeof needsNetwork | typeof needsLease;

export class Admissions {
  readonly #stores: MeterStores;
  readonly #chain: Chain;

  constructor(stores: MeterStores) {
    this.#stores = stores;
    this.#chain = new Chain(stores);
  }

  admit(request: AdmitRequest, now: number, networkAdmitted = false): Verdict {
    requireAmounts(request.reserveMicroUsd, request.inputBytes);
    return this.#refuseOrReplay(request, now) ?? this.#admitByRules(request, now, networkAdmitted);
  }

  #refuseOrReplay(request: Known, now: number): AdmitAnswer | undefined {
    const { owner, bearer, idempotency } = request;
    if (this.#stores.revocations.covers(owner, bearer)) return revoked;
    const row = idempotency && this.#stores.idempotency.find(owner, idempotency.key, now);
    if (!row || row.admission === request.admission) return undefined;
    if (row.fingerprint !== idempotency.fingerprint) return otherRequest;
    const { admission, upstreamId, digest } = row;
    if (upstreamId === null && this.#stores.jobs.findOpen(admission)) return inProgress;
    const { status, endedAt } = (upstreamId === null && this.#stores.jobs.find(admission)) || {};
    const isKnown = typeof endedAt === "number" && status !== "TIMED_OUT";
    const replay = { admission, upstreamId, ...(digest !== null && { digest }), ...(isKnown && { endedAt }) };
    return { admitted: false, replay };
  }

  #admitByRules(request: AdmitRequest, now: number, networkAdmitted: boolean): Verdict {
    const subjects = this.#subjects(request, request.operation, now);
    const usages = this.#usages(subjects, request, now);
    /** Told twice, it counts once. */
    if (this.#stores.has(request.admission)) return { admitted: true, quota: rateLimitFields(usages, now) };
    const refusal = refuse(usages, request, now);
    if (refusal) this.#stores.noteClaim(request);
    if (refusal) return refusal;
    if (request.network !== undefined && !networkAdmitted) return needsNetwork;
    if (this.#needsLease(request, request.reserveMicroUsd, dayOf(now), now)) return needsLease;
    this.#count(request, subjects, now);
    return { admitted: true, quota: rateLimitFields(usages, now, (usage) => neededOf(usage, request)) };
  }

  timesAdmitted(request: AdmitRequest, now: number): number {
    return timesAdmitted(this.#usages(this.#subjects(request, request.operation, now), request, now), request);
  }

  #needsLease({ hasCeiling }: Pick<AdmitRequest, "hasCeiling">, added: number, day: number, now: number): boolean {
    if (!hasCeiling || added <= 0) return false;
    return !this.#stores.leases.covers(day, this.#stores.counters.consumed(day), added, now);
  }

  /** Sets what a large body reserves. The request itself was counted when it was admitted. */
  amend(admission: string, amendment: Amendment, now: number, networkAdmitted = false): Verdict {
    requireAmounts(amendment.reserveMicroUsd, amendment.inputBytes);
    const job = this.#stores.jobs.findOpen(admission);
    if (!job) return lost;
    const { terms, reserveMicroUsd } = amendment;
    const target = { model: job.model, kind: job.kind || undefined };
    const subjects = this.#subjects(terms, job.operation, now).map(byMoneyAlone);
    /** Its money counts on the day that it was admitted on. */
    const usages = this.#usages(subjects, target, job.admittedAt);
    const added = { reserveMicroUsd: Math.max(0, reserveMicroUsd - job.reserved) };
    const refusal = refuse(usages, added, now);
    if (refusal) return refusal;
    if (job.network !== null && !networkAdmitted) return needsNetwork;
    const day = dayOf(job.admittedAt);
    if (this.#needsLease(terms, added.reserveMicroUsd, day, now)) return needsLease;
    this.#stores.transaction(() => this.#amend(job, amendment, now));
    return { admitted: true, quota: rateLimitFields(usages, now, (usage) => neededOf(usage, added)) };
  }

  #amend(job: Job, { reserveMicroUsd, inputBytes, ttlMs = job.ttlMs, webhook, digest }: Amendment, now: number): void {
    const reserved = job.operation === "joined" ? 0 : reserveMicroUsd;
    const change = { reserved, inputBytes, ttlMs, webhook: webhook ?? job.webhook };
    const timed = { ...job, ...change };
    this.#stores.amend(job, { ...change, expiresAt: expiresAt(timed, now), dueAt: firstDueAt(timed, now) }, now);
    const { owner, idempotencyKey, admission } = job;
    if (digest === undefined || idempotencyKey === null) return;
    this.#stores.idempotency.identify(owner, idempotencyKey, admission, digest);
  }

  /** Counts an answer from the cache. It is no job, so only rules for requests apply. */
  countHit(hit: Hit, now: number): HitAnswer {
    const { owner, bearer, row, named } = hit;
    const earlier = this.#refuseOrReplay({ owner, bearer, idempotency: named, admission: named?.admission }, now);
    if (earlier) return earlier;
    const listed = this.#stores.gallery.find(owner, row.key);
    if (listed === "removed") return "removed";
    const subjects = this.#subjects(hit, undefined, now);
    const usages = this.#usages(subjects, hit, now).filter(({ unit }) => unit === "requests");
    const isNewLink = !named?.isListed && listed === undefined;
    const isNewKey = named !== undefined && !this.#stores.idempotency.find(owner, named.key, now);
    const isNew = isNewLink || isNewKey;
    const refusal = isNew ? refuse(usages, free, now) : undefined;
    if (refusal) return refusal;
    if (isNew) {
      this.#stores.transaction(() => {
        this.#stores.touch(now);
        const account = hit.token?.id ?? payersAccount;
        this.#stores.counters.countHit(account, countersOf(subjects, hit), this.#stores.nextTurn, now);
        if (isNewLink) this.#stores.gallery.add(owner, row, now);
        if (isNewKey) this.#stores.idempotency.add(owner, named.key, named, now);
      });
    }
    return { admitted: true, quota: rateLimitFields(usages, now, () => (isNew ? 1 : 0)) };
  }

  /** A network's meter counts for the addresses in it, under ten times their plan, or what the operator set for it. */
  #subjects({ plan, plans, token }: Claims, operation: JobOperation | undefined, now: number): Subject[] {
    const { settings, counters } = this.#stores;
    const own = settings.rules(plan, plans);
    const rules = operation === "network" && settings.current.rules === undefined ? tenfold(own) : own;
    const payer = { id: payersAccount, account: counters.payer, rules, granted: settings.granted(now) };
    if (!token) return [payer];
    const account: Account | undefined = counters.account(token.id);
    return [payer, { id: token.id, account, rules: token.rules, maxCostMicroUsd: token.maxCostMicroUsd }];
  }

  #usages(subjects: readonly Subject[], target: RuleTarget | undefined, now: number): RuleUsage[] {
    return subjects.flatMap((subject) => usagesOf(subject, this.#stores, target, now));
  }

  usages(claims: Claims, now: number, operation?: JobOperation): RuleUsage[] {
    return this.#usages(this.#subjects(claims, operation, now), undefined, now);
  }

  /** Of the rules that uploads are held against. */
  uploadUsages(request: UploadRequest, now: number): RuleUsage[] {
    const operation = request.isShare ? "network" : undefined;
    return this.#usages(this.#subjects(request, operation, now), "upload", now);
  }

  #count(request: AdmitRequest, subjects: readonly Subject[], now: number): void {
    const { admission, idempotency, owner, webhookInput } = request;
    const job = this.#jobOf(request, countersOf(subjects, request), now);
    const { idempotency: keys, outbox } = this.#stores;
    const keep = () => {
      if (idempotency) keys.add(owner, idempotency.key, { ...idempotency, admission }, now);
      if (webhookInput !== undefined) outbox.keepInput(admission, webhookInput);
    };
    this.#stores.admit(job, idempotency || webhookInput !== undefined ? keep : undefined);
  }

  #jobOf(request: AdmitRequest, counters: string, now: number): Omit<Job, "turn"> {
    const { admission, owner, model, kind, token, ttlMs, retentionMs, joined, retryOf, hasNotice } = request;
    const operation: JobOperation = request.operation !== "network" && joined ? "joined" : request.operation;
    const timed = {
      admission,
      admittedAt: now,
      ttlMs,
      retentionMs,
      boundAt: null,
      doubtedAt: null,
      seen: null,
      seenAt: null,
      noticeAt: null,
      operation,
    };
    return {
      ...timed,
      owner,
      account: token?.id ?? payersAccount,
      model,
      kind: kind ?? "",
      plan: request.plan,
      planFrom: request.planFrom,
      counters,
      reserved: joined ? 0 : request.reserveMicroUsd,
      place: joined ? 0 : 1,
      expiresAt: expiresAt(timed, now),
      dueAt: firstDueAt(timed, now),
      upstreamId: retryOf?.upstreamId ?? null,
      guessed: 0,
      retryOf: retryOf ? this.#chain.firstOf(retryOf.admission) : null,
      successor: null,
      inputBytes: request.inputBytes,
      pieces: 0,
      textBytes: 0,
      earlierCost: 0,
      earlierText: 0,
      hasNotice: hasNotice ? 1 : 0,
      webhook: request.webhook ?? (retryOf ? this.#chain.webhookOf(retryOf.admission) : null),
      noticed: 0,
      idempotencyKey: request.idempotency?.key ?? null,
      network: request.network ?? null,
      ...notEnded,
    };
  }
}

/** What is checked before the rules: the idempotency key, and the token's revocation. */
interface Known extends Pick<AdmitRequest, "owner" | "bearer" | "idempotency"> {
  readonly admission: string | undefined;
}

/** A hit costs nothing and takes no place. */
const free = { reserveMicroUsd: 0, joined: true };

/** To read a counter of requests at an earlier moment moves what it counted there: see `SlidingCounter`. */
function byMoneyAlone(subject: Subject): Subject {
  return { ...subject, rules: subject.rules.filter(({ unit }) => unit === "usd") };
}

function countersOf(subjects: readonly Subject[], target: RuleTarget): string {
  const [payers = [], tokens = []] = subjects.map(({ id, rules }) => {
    const keys = appliedRules(id, rules, target).flatMap(({ rule, scope }) => {
      return rule.unit === "requests" ? [windowKey(rule.per, scope)] : [];
    });
    return [...new Set(keys)];
  });
  return writeKeys(payers, tokens);
}

export function refuse(
  usages: readonly RuleUsage[],
  asked: Parameters<typeof decide>[1],
  now: number,
): Refusal | undefined {
  const verdict = decide(usages, asked, now);
  if (verdict.allowed) return undefined;
  const { code, detail, retryAfterSeconds } = verdict;
  const quota = rateLimitFields(usages, now);
  return { admitted: false, code, detail, quota, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
}

const revoked: Refusal = { admitted: false, code: "TOKEN_REVOKED", detail: "The token was revoked." };
const otherRequest: Refusal = {
  admitted: false,
  code: "IDEMPOTENCY_MISMATCH",
  detail: "This Idempotency-Key was used for another request.",
};
const inProgress: Refusal = {
  admitted: false,
  code: "IN_PROGRESS",
  detail: "The request with this Idempotency-Key is still being submitted.",
  retryAfterSeconds: 1,
};
/** Its caller does not wait for it any more, or it was assumed to be lost. */
export const lost: Refusal = {
  admitted: false,
  code: "METER_UNAVAILABLE",
  detail: "The request took so long that it was given up.",
  retryAfterSeconds: 1,
};
