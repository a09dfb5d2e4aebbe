// What the operator set for one payer: a plan, rules of its own, and grants.

import { knownPlan, readPlans, rulesOf } from "../operator-settings/plans.ts";
import type { Rule } from "../operator-settings/rules.ts";
import type { PlanClaim } from "./metering.ts";

export interface Grant {
  /** One that is told twice counts once. Absent in those of an older version. */
  readonly id?: string;
  readonly unit: Rule["unit"];
  /** Requests, jobs or micro-USD. */
  readonly amount: number;
  readonly expiresAt: number;
}

export interface AccountSettings {
  /** Overrides the plan that the token claims. */
  readonly plan?: string;
  /** Override the plan's rules. */
  readonly rules?: readonly Rule[];
  readonly grants: readonly Grant[];
}

/** What an operator's call says; what it leaves out stays, null is taken back. */
export interface SettingsChange {
  readonly plan?: string | null | undefined;
  readonly rules?: readonly Rule[] | null | undefined;
  readonly grant?: Grant;
}

const maxGrants = 50;

/** Undefined where there is no room for another grant. */
export function changed(current: AccountSettings, change: SettingsChange, now: number): AccountSettings | undefined {
  const { plan = current.plan, rules = current.rules, grant } = change;
  const others = current.grants.filter(({ id, expiresAt }) => expiresAt > now && (!grant || id !== grant.id));
  const grants = grant ? [...others, grant] : others;
  if (grants.length > maxGrants) return undefined;
  return { grants, ...(plan != null && { plan }), ...(rules && { rules }) };
}

/** The plan whose rules hold, and who says so. */
export interface HeldPlan {
  readonly plan: string;
  readonly planFrom: PlanClaim["planFrom"] | "operator";
  /** What was said instead, where nobody knows a plan of that name. */
  readonly unknownPlan?: string;
}

export class Settings {
  #current: AccountSettings;

  constructor(current: AccountSettings = { grants: [] }) {
    this.#current = current;
  }

  get current(): AccountSettings {
    return this.#current;
  }

  /** Nothing that the operator set holds any longer. */
  hasNoOverrides(now: number): boolean {
    const { plan, rules, grants } = this.#current;
    return plan === undefined && rules === undefined && grants.every(({ expiresAt }) => expiresAt <= now);
  }

  change(next: AccountSettings, now: number): void {
    this.#current = { ...next, grants: next.grants.filter(({ expiresAt }) => expiresAt > now) };
  }

  rules(plan: string, plans: string): readonly Rule[] {
    return this.#current.rules ?? rulesOf(this.#current.plan ?? plan, readPlans(plans));
  }

  held({ plan, planFrom, plans }: PlanClaim & { readonly plans: string }): HeldPlan {
    const override = this.#current.plan;
    const said = override ?? plan;
    const known = knownPlan(said, readPlans(plans));
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
}
