// The plans that there are without the operator, as data; the operator's plans of the same name go before them.
import type { BuiltInPlan } from "../../config.ts";
import type { Rule } from "../rules.ts";

export type PlansByName = Readonly<Record<string, readonly Rule[]>>;

/** `models` of a rule names models and kinds: `image`, `image-edit`, `video`, `speech`, `text`. */
export const builtInPlans = {
  anonymous: [
    { unit: "requests", limit: 5, per: "minute" },
    { unit: "requests", limit: 30, per: "day" },
    { unit: "jobs", limit: 1 },
    { unit: "usd", limit: 0.25, per: "day" },
    { unit: "usd", limit: 0, per: "day", models: ["video"] },
  ],
  free: [
    { unit: "requests", limit: 20, per: "minute" },
    { unit: "requests", limit: 500, per: "day" },
    { unit: "jobs", limit: 3 },
    { unit: "usd", limit: 1, per: "day" },
    { unit: "usd", limit: 10, per: "month" },
  ],
  pro: [
    { unit: "requests", limit: 300, per: "minute" },
    { unit: "jobs", limit: 20 },
    { unit: "usd", limit: 25, per: "day" },
    { unit: "usd", limit: 250, per: "month" },
  ],
  unlimited: [],
} as const satisfies Record<Exclude<BuiltInPlan, "developer">, readonly Rule[]>;

/** It travels to a meter beside the operator's plans, so that no meter of a deployment knows it. */
const developersPlans = {
  developer: [
    { unit: "requests", limit: 600, per: "minute" },
    { unit: "jobs", limit: 20 },
  ],
} as const satisfies PlansByName;

/** What there is on a developer's machine alone. */
export function localPlans(local: boolean): PlansByName {
  return local ? developersPlans : {};
}

/** The plans that there are without the operator. */
export function plansWithoutOperator(local: boolean): PlansByName {
  return { ...builtInPlans, ...localPlans(local) };
}

/** What a plan means that nobody knows: the narrowest. */
const narrowest = "anonymous";

/** The operator's plans as they travel: a text is copied and compared in no time, and read once for as long as it stays. */
export class PlansReader {
  #text = "{}";
  #plans: PlansByName = {};

  read(text: string): PlansByName {
    if (text !== this.#text) [this.#text, this.#plans] = [text, JSON.parse(text)];
    return this.#plans;
  }
}

export function plansText(plans: PlansByName): string {
  return JSON.stringify(plans);
}

/** The plan that holds where this one is said. */
export function knownPlan(plan: string, operators: PlansByName): string {
  return Object.hasOwn(operators, plan) || Object.hasOwn(builtInPlans, plan) ? plan : narrowest;
}

export function rulesOf(plan: string, operators: PlansByName): readonly Rule[] {
  const name = knownPlan(plan, operators);
  return findPlan(operators, name) ?? findPlan(builtInPlans, name) ?? builtInPlans[narrowest];
}

export function findPlan(plans: PlansByName, name: string): readonly Rule[] | undefined {
  return Object.hasOwn(plans, name) ? plans[name] : undefined;
}
