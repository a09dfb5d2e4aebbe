// What the operator set for one payer: a plan, rules of its own, and grants.
import type { Rule } from "../rules.ts";
import { PlansReader, rulesOf } from "./plans.ts";

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

export class Settings {
  #current: AccountSettings;
  readonly #plans = new PlansReader();

  constructor(current: AccountSettings = { grants: [] }) {
    this.#current = current;
  }

  get current(): AccountSettings {
    return this.#current;
  }

  get areUsual(): boolean {
    const { plan, rules, grants } = this.#current;
    return plan === undefined && rules === undefined && grants.length === 0;
  }

  change(next: AccountSettings, now: number): void {
    this.#current = { ...next, grants: next.grants.filter(({ expiresAt }) => expiresAt > now) };
  }

  rules(plan: string, plans: string): readonly Rule[] {
    return this.#current.rules ?? rulesOf(this.#current.plan ?? plan, this.#plans.read(plans));
  }

  granted(now: number): Partial<Record<Rule["unit"], number>> {
    const sums: Partial<Record<Rule["unit"], number>> = {};
    for (const { unit, amount, expiresAt } of this.#current.grants) {
      if (expiresAt > now) sums[unit] = (sums[unit] ?? 0) + amount;
    }
    return sums;
  }
}
