// How a payer's meter admits: revocation, idempotency, rules, the app's budget, and the reservation, in one turn.
import { appliedRules } from "./applied-rules.ts";
import { decide, neededOf, type Standing } from "./decide.ts";
import type { Endings } from "./endings.ts";
import type { MeterStores } from "./meter-stores.ts";
import { joinedOperation } from "./metered-jobs.ts";
import type { AdmitAnswer, AdmitRequest } from "./metering.ts";
import { dayOf } from "./periods.ts";
import { rateLimitFields } from "./rate-limit-fields.ts";
import type { Counter } from "./request-windows.ts";
import { payersAccount } from "./spending.ts";
import { type Account, standingsOf } from "./standings.ts";

/** Whose rules count: what the token claims, and what it narrows. */
export type Claims = Pick<AdmitRequest, "plan" | "planFrom" | "plans" | "token">;

/** The request passes every rule, and the app's budget must be asked before it is admitted. */
export const needsLease = Symbol("needs a lease");

export class Admissions {
  readonly #stores: MeterStores;
  readonly #endings: Endings;

  constructor(stores: MeterStores, endings: Endings) {
    this.#stores = stores;
    this.#endings = endings;
  }

  admit(request: AdmitRequest, now: number): AdmitAnswer | typeof needsLease {
    this.#endings.expireOverdue(now);
    return this.#refuseOrReplay(request, now) ?? this.#admitByRules(request, now);
  }

  #refuseOrReplay(request: AdmitRequest, now: number): AdmitAnswer | undefined {
    const { owner, bearer, idempotency } = request;
    if (this.#stores.settings.isRevoked(owner, bearer)) {
      return { admitted: false, code: "TOKEN_REVOKED", detail: "The token was revoked." };
    }
    const row = idempotency && this.#stores.idempotency.find(owner, idempotency.key, now);
    if (!row || row.admission === request.admission) return undefined;
    if (row.fingerprint !== idempotency.fingerprint) {
      const detail = "This Idempotency-Key was used for another request.";
      return { admitted: false, code: "IDEMPOTENCY_MISMATCH", detail };
    }
    if (row.ref !== null) {
      const { admission, ref, digest } = row;
      return { admitted: false, replay: { admission, ref, ...(digest !== null && { digest }) } };
    }
    const detail = "The request with this Idempotency-Key is still being submitted.";
    return { admitted: false, code: "IN_PROGRESS", detail, retryAfterSeconds: 1 };
  }

  #admitByRules(request: AdmitRequest, now: number): AdmitAnswer | typeof needsLease {
    this.#stores.lastClaim.note(request);
    const accounts = this.#accounts(request, now);
    const standings = accounts.flatMap((account) => standingsOf(account, this.#stores, request, now));
    /** The relay asks twice where the first answer was lost. */
    if (this.#stores.jobs.has(request.admission)) return { admitted: true, quota: rateLimitFields(standings, now) };
    const verdict = decide(standings, request, now);
    if (!verdict.allowed) {
      const { code, detail, retryAfterSeconds } = verdict;
      const quota = rateLimitFields(standings, now);
      return { admitted: false, code, detail, quota, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
    }
    const today = dayOf(now);
    const consumed = this.#stores.spending.consumed(today);
    const { reserveMicroUsd } = request;
    if (reserveMicroUsd > 0 && !this.#stores.leases.covers(today, consumed, reserveMicroUsd, now)) return needsLease;
    this.#count(request, accounts, now);
    return { admitted: true, quota: rateLimitFields(standings, now, (standing) => neededOf(standing, request)) };
  }

  #accounts({ plan, plans, token }: Pick<Claims, "plan" | "plans" | "token">, now: number): Account[] {
    const { settings } = this.#stores;
    const payers = { id: payersAccount, rules: settings.rules(plan, plans), granted: settings.granted(now) };
    if (!token) return [payers];
    const { id, rules, maxCostMicroUsd } = token;
    return [payers, { id, rules, maxCostMicroUsd }];
  }

  #count(request: AdmitRequest, accounts: readonly Account[], now: number): void {
    const { admission, owner, model, kind, operation, token, reserveMicroUsd, idempotency, webhook } = request;
    const { ttlMs, retentionMs, joined } = request;
    const counters = new Set<Counter>();
    for (const { id, rules } of accounts) {
      for (const { rule, scope } of appliedRules(id, rules, request)) {
        if (rule.unit === "requests") counters.add(this.#stores.windows.counter(id, rule.per, scope));
      }
    }
    const job = {
      ...({ admission, owner, account: token?.id ?? payersAccount, model, kind: kind ?? "" } as const),
      operation: joined ? joinedOperation : operation,
      ...{ reserved: reserveMicroUsd, admittedAt: now, ttlMs, retentionMs, webhook: webhook ?? null },
      idempotencyKey: idempotency?.key ?? null,
    };
    const keep = idempotency && (() => this.#keepKey(owner, idempotency, admission, now));
    this.#stores.admit(job, [...counters], keep);
  }

  #keepKey(owner: string, { key, fingerprint }: { key: string; fingerprint: string }, admission: string, now: number) {
    this.#stores.idempotency.add(owner, key, { fingerprint, admission }, now);
  }

  standings(claims: Claims, now: number): Standing[] {
    return this.#accounts(claims, now).flatMap((account) => standingsOf(account, this.#stores, undefined, now));
  }
}
