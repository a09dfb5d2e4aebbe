// The plans that there are without the operator, as data; the operator's plans of the same name go before them.
import type { Rule } from "../rules.ts";

/** `models` of a rule names models and kinds: `image`, `image-edit`, `video`, `speech`, `text`. */
export const builtInPlans: Readonly<Record<string, readonly Rule[]>> = {
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
};

/** The narrowest: what a plan means that nobody knows. */
const narrowest = "anonymous";

/** Of a plan's rules; kept, since what is worked out for rules is kept by them. */
const tenfolds = new WeakMap<readonly Rule[], readonly Rule[]>();

/** What all addresses of a network may do together. */
export function tenfold(rules: readonly Rule[]): readonly Rule[] {
  const known = tenfolds.get(rules);
  if (known) return known;
  const made = rules.map((rule) => ({ ...rule, limit: rule.limit * 10 }));
  tenfolds.set(rules, made);
  return made;
}

export type PlansByName = Readonly<Record<string, readonly Rule[]>>;

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

export function rulesOf(plan: string, operators: PlansByName): readonly Rule[] {
  return find(operators, plan) ?? find(builtInPlans, plan) ?? builtInPlans[narrowest] ?? [];
}

function find(plans: PlansByName, name: string): readonly Rule[] | undefined {
  return Object.hasOwn(plans, name) ? plans[name] : undefined;
}
