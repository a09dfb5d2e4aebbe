// Which of an account's rules a request meets, what each is called and counted under: worked out once for a plan.
import type { Kind } from "../../models/model.ts";
import { modelsOf, type Rule } from "../operator-settings/rules.ts";
import { payersAccount } from "./account.ts";
import type { Covers } from "./money.ts";

/** What is asked for: a job of a model, or room for an upload. */
export type RuleTarget = "upload" | { readonly model: string; readonly kind: Kind | undefined };

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
  target: RuleTarget | undefined,
): readonly AppliedRule[] {
  const prefix = account === payersAccount ? "" : "token";
  const ofRules = known.get(rules) ?? new Map<string, readonly AppliedRule[]>();
  known.set(rules, ofRules);
  const key = keyOf(prefix, target);
  const applied = ofRules.get(key) ?? apply(rules, prefix, target);
  ofRules.set(key, applied);
  return applied;
}

function keyOf(prefix: string, target: RuleTarget | undefined): string {
  if (target === undefined) return prefix;
  return target === "upload" ? `${prefix} /upload` : `${prefix} ${target.model} ${target.kind}`;
}

function apply(rules: readonly Rule[], prefix: string, target: RuleTarget | undefined): readonly AppliedRule[] {
  const met = rules.filter((rule) => !target || isMet(rule, target));
  const names = namesOf(met, prefix);
  return met.map((rule, at) => ({
    rule,
    name: names[at] ?? "",
    scope: scopeOf(rule),
    covers: (model, kind) => covers(rule, model, kind),
  }));
}

function isMet(rule: Rule, target: RuleTarget): boolean {
  const isOfUploads = rule.unit === "bytes" || rule.unit === "stored";
  return target === "upload" ? isOfUploads : !isOfUploads && covers(rule, target.model, target.kind);
}

/** A rule's `models` names models and kinds. */
export function covers(rule: Rule, model: string, kind: Kind | undefined): boolean {
  return modelsOf(rule)?.some((name) => name === model || name === kind) ?? true;
}

/** What a counter is kept under: rules that differ in their limit alone share it, so a new limit forgets nothing. */
export function scopeOf(rule: Rule): string {
  return [...new Set(modelsOf(rule) ?? [])].sort().join(",");
}

const namedModels = 2;

/** As users read it; told apart by a number where two rules would be called the same. */
export function namesOf(rules: readonly Rule[], prefix: string): string[] {
  const taken = new Map<string, number>();
  return rules.map((rule) => {
    const scope = [...new Set(modelsOf(rule) ?? [])].sort();
    const more = scope.length > namedModels ? [`${scope.length - namedModels}-more`] : [];
    const parts = [prefix, rule.unit, "per" in rule ? rule.per : "", ...scope.slice(0, namedModels), ...more];
    const name = parts.filter((part) => part !== "").join("-");
    const count = (taken.get(name) ?? 0) + 1;
    taken.set(name, count);
    return count === 1 ? name : `${name}-${count}`;
  });
}
