// What the operator set for one payer: a plan, rules of its own, grants, and what was revoked.
import type { Rule } from "../rules.ts";
import type { PlanClaim } from "./metering.ts";
import { knownPlan, PlansReader, rulesOf } from "./plans.ts";

export interface Grant {
  readonly unit: Rule["unit"];
  /** Requests, jobs or micro-USD. */
  readonly amount: number;
  readonly expiresAt: number;
}

export interface AccountSettings {
  /** Goes before what the token claims. */
  readonly plan?: string;
  /** Go before the plan's. */
  readonly rules?: readonly Rule[];
  readonly grants: readonly Grant[];
}

/** The plan whose rules hold, and who says so. */
export interface HeldPlan {
  readonly plan: string;
  readonly planFrom: PlanClaim["planFrom"] | "operator";
  /** What was said instead, where nobody knows a plan of that name. */
  readonly unknownPlan?: string;
}

const usual: AccountSettings = { grants: [] };

export class Settings {
  readonly #sql: SqlStorage;
  #current: AccountSettings;
  /** Whether the operator set anything, be it taken back since. */
  #isSet: boolean;
  readonly #plans = new PlansReader();
  readonly #revoked = new Map<string, number>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    const row = sql.exec<{ json: string }>("SELECT json FROM settings").toArray()[0];
    this.#current = row ? JSON.parse(row.json) : usual;
    this.#isSet = row !== undefined;
    const revocations = sql.exec<{ name: string; at: number }>("SELECT name, at FROM revocations");
    for (const { name, at } of revocations) this.#revoked.set(name, at);
  }

  get current(): AccountSettings {
    return this.#current;
  }

  /** Whether the operator ever set or revoked something. */
  get isTouched(): boolean {
    return this.#isSet || this.#revoked.size > 0;
  }

  change(next: AccountSettings, now: number): void {
    this.#current = { ...next, grants: next.grants.filter(({ expiresAt }) => expiresAt > now) };
    this.#isSet = true;
    this.#sql.exec("INSERT OR REPLACE INTO settings (id, json) VALUES (1, ?)", JSON.stringify(this.#current));
  }

  rules(plan: string, plans: string): readonly Rule[] {
    return this.#current.rules ?? rulesOf(this.#current.plan ?? plan, this.#plans.read(plans));
  }

  held({ plan, planFrom, plans }: PlanClaim & { readonly plans: string }): HeldPlan {
    const override = this.#current.plan;
    const said = override ?? plan;
    const known = knownPlan(said, this.#plans.read(plans));
    const from = override === undefined ? planFrom : "operator";
    return { plan: known, planFrom: from, ...(known !== said && { unknownPlan: said }) };
  }

  granted(now: number): Partial<Record<Rule["unit"], number>> {
    const sums: Partial<Record<Rule["unit"], number>> = {};
    for (const { unit, amount, expiresAt } of this.#current.grants) {
      if (expiresAt > now) sums[unit] = (sums[unit] ?? 0) + amount;
    }
    return sums;
  }

  /** Whatever was issued to the owner up to this moment. */
  revokeOwner(owner: string, at: number): void {
    this.#revoke(ownerKey(owner), Math.max(at, this.#revoked.get(ownerKey(owner)) ?? 0));
  }

  /** Kept until the token would have expired by itself. */
  revokeToken(tokenId: string, expiresAt: number, now: number): void {
    for (const [name, at] of this.#revoked) {
      if (name.startsWith(tokenPrefix) && at < now) this.#forget(name);
    }
    this.#revoke(tokenKey(tokenId), expiresAt);
  }

  /** A token of the very moment of its owner's revocation is revoked. */
  isRevoked(owner: string, { issuedAt, tokenId }: { issuedAt: number; tokenId: string | undefined }): boolean {
    if (this.#revoked.size === 0) return false;
    const revokedAt = this.#revoked.get(ownerKey(owner));
    if (revokedAt !== undefined && issuedAt <= revokedAt) return true;
    return tokenId !== undefined && this.#revoked.has(tokenKey(tokenId));
  }

  revokedAt(owner: string): number | undefined {
    return this.#revoked.get(ownerKey(owner));
  }

  #revoke(name: string, at: number): void {
    this.#revoked.set(name, at);
    this.#sql.exec("INSERT OR REPLACE INTO revocations (name, at) VALUES (?, ?)", name, at);
  }

  #forget(name: string): void {
    this.#revoked.delete(name);
    this.#sql.exec("DELETE FROM revocations WHERE name = ?", name);
  }
}

const tokenPrefix = "token:";
const tokenKey = (tokenId: string) => `${tokenPrefix}${tokenId}`;
const ownerKey = (owner: string) => `owner:${owner}`;
