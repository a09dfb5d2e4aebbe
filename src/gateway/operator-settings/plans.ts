// The built-in plans, as data. An operator's plan of the same name overrides one.
import type { BuiltInPlan } from "../../settings.ts";
import type { ControlView } from "./control-view.ts";
import type { Rule } from "./rules.ts";

export type PlansByName = Readonly<Record<string, readonly Rule[]>>;

const megabyte = 1_000_000;

/** `models` of a rule names models and kinds: `image`, `image-edit`, `video`, `speech`, `text`. */
export const builtInPlans = {
  anonymous: [
    { unit: "requests", limit: 5, per: "minute" },
    { unit: "requests", limit: 30, per: "day" },
    { unit: "jobs", limit: 1 },
    { unit: "usd", limit: 0.25, per: "day" },
    { unit: "usd", limit: 0, per: "day", models: ["video"] },
    { unit: "bytes", limit: 100 * megabyte, per: "day" },
    { unit: "stored", limit: 100 * megabyte },
  ],
  free: [
    { unit: "requests", limit: 20, per: "minute" },
    { unit: "requests", limit: 500, per: "day" },
    { unit: "jobs", limit: 3 },
    { unit: "usd", limit: 1, per: "day" },
    { unit: "usd", limit: 10, per: "month" },
    { unit: "bytes", limit: 1000 * megabyte, per: "day" },
    { unit: "stored", limit: 2000 * megabyte },
  ],
  pro: [
    { unit: "requests", limit: 300, per: "minute" },
    { unit: "jobs", limit: 20 },
    { unit: "usd", limit: 25, per: "day" },
    { unit: "usd", limit: 250, per: "month" },
    { unit: "bytes", limit: 10_000 * megabyte, per: "day" },
    { unit: "stored", limit: 50_000 * megabyte },
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

/** An unknown plan name means the narrowest plan. */
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

let latest = { text: "{}", plans: {} as PlansByName };

/**
 * The operator's plans as they travel: a text is copied and compared in no time. It is read once for all meters of an
 * isolate, so that what is worked out for a plan's rules is there when the next meter wakes.
 */
export function readPlans(text: string): PlansByName {
  if (text !== latest.text) latest = { text, plans: JSON.parse(text) };
  return latest.plans;
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

const known = new WeakMap<ControlView, { version: number; plans: string }>();

/** The plans that are not built in as a meter is told them, made once for each version that the isolate reads. */
export function plansOf(control: ControlView, local: boolean): string {
  const made = known.get(control);
  if (made?.version === control.version) return made.plans;
  const plans = plansText({ ...localPlans(local), ...operatorsPlans(control) });
  known.set(control, { version: control.version, plans });
  return plans;
}

export function operatorsPlans(control: ControlView): PlansByName {
  return Object.fromEntries([...control.plans].map(([name, { rules }]) => [name, rules]));
}
