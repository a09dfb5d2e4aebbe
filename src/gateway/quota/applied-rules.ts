// Which of an account's rules a request meets, what each is called and counted under: worked out once for a plan.
import type { Kind } from "../../models/model.ts";
import type { Rule } from "../rules.ts";
import { payersAccount } from "./account.ts";
import type { Covers } from "./money.ts";

export interface Target {
  readonly model: string;
  readonly kind: Kind | undefined;
}

export interface AppliedRule {
  readonly rule: Rule;
  readonly name: string;
  /** What its counter is kept under. */
  readonly scope: string;
  readonly covers: Covers;
}

/** A plan's rules are one array for as long as nobody changes them. */
const known = new WeakMap<readonly Rule[], Map<string, readonly AppliedRule[]>>();

/** Those that a request for the target would meet; all of them where there is no target. */
export function appliedRules(
  account: string,
  rules: readonly Rule[],
  target: Target | undefined,
): readonly AppliedRule[] {
  const prefix = account === payersAccount ? "" : "token";
  const ofRules = known.get(rules) ?? new Map<string, readonly AppliedRule[]>();
  known.set(rules, ofRules);
  const key = target ? `${prefix} ${target.model} ${target.kind}` : prefix;
  const applied = ofRules.get(key) ?? apply(rules, prefix, target);
  ofRules.set(key, applied);
  return applied;
}

function apply(rules: readonly Rule[], prefix: string, target: Target | undefined): readonly AppliedRule[] {
  const met = rules.filter((rule) => !target || covers(rule, target.model, target.kind));
  const names = namesOf(met, prefix);
  return met.map((rule, at) => ({
    rule,
    name: names[at] ?? "",
    scope: scopeOf(rule),
    covers: (model, kind) => covers(rule, model, kind),
  }));
}

/** A rule's `models` names models and kinds. */
export function covers({ models }: Rule, model: string, kind: Kind | undefined): boolean {
  return models?.some((name) => name === model || name === kind) ?? true;
}

/** What a counter is kept under: rules that differ in their limit alone share it, so a new limit forgets nothing. */
export function scopeOf({ models }: Rule): string {
  return models ? [...new Set(models)].sort().join(",") : "";
}

const namedModels = 2;

/** As users read it; told apart by a number where two rules would be called the same. */
export function namesOf(rules: readonly Rule[], prefix: string): string[] {
  const taken = new Map<string, number>();
  return rules.map((rule) => {
    const scope = [...new Set(rule.models ?? [])].sort();
    const more = scope.length > namedModels ? [`${scope.length - namedModels}-more`] : [];
    const parts = [prefix, rule.unit, rule.unit === "jobs" ? "" : rule.per, ...scope.slice(0, namedModels), ...more];
    const name = parts.filter((part) => part !== "").join("-");
    const count = (taken.get(name) ?? 0) + 1;
    taken.set(name, count);
    return count === 1 ? name : `${name}-${count}`;
  });
}
