// How the rules stand: each with what is used of it, as the meter's counters have it.
import type { Kind } from "../../models/model.ts";
import { microUsd, type Rule } from "../rules.ts";
import type { Standing } from "./decide.ts";
import type { MeteredJobs } from "./metered-jobs.ts";
import { endOf, startOf, windowMs } from "./periods.ts";
import type { RequestWindows } from "./request-windows.ts";
import { type Covers, payersAccount, type Spending } from "./spending.ts";

/** Whose rules they are: the payer's, or those of a token that narrows. */
export interface Account {
  readonly id: string;
  readonly rules: readonly Rule[];
  readonly maxCostMicroUsd?: number | undefined;
  /** What the operator granted on top, by unit. */
  readonly granted?: Readonly<Partial<Record<Rule["unit"], number>>>;
}

export interface Counters {
  readonly windows: RequestWindows;
  readonly spending: Spending;
  readonly jobs: MeteredJobs;
}

export interface Target {
  readonly model: string;
  readonly kind: Kind | undefined;
}

/** Those that a request for the target would meet; all of them where there is no target. */
export function standingsOf(account: Account, counters: Counters, target: Target | undefined, now: number): Standing[] {
  const prefix = account.id === payersAccount ? "" : "token";
  const rules = account.rules.filter((rule) => !target || covers(rule, target.model, target.kind));
  const names = namesOf(rules, prefix);
  const standings = rules.map((rule, at) => standingOf(names[at] ?? "", rule, account, counters, now));
  const { maxCostMicroUsd: limit } = account;
  return limit === undefined ? standings : [...standings, costStanding(account.id, limit, counters)];
}

function standingOf(name: string, rule: Rule, account: Account, counters: Counters, now: number): Standing {
  const { id, granted = {} } = account;
  const grant = granted[rule.unit] ?? 0;
  const coversRule: Covers = (model, kind) => covers(rule, model, kind);
  const of = rule.models ? `of ${rule.models.join(", ")} ` : "";
  switch (rule.unit) {
    case "requests": {
      const counter = counters.windows.find(id, rule.per, scopeOf(rule));
      return {
        ...{ name, unit: rule.unit, scope: `${of}in a ${rule.per}`, limit: rule.limit + grant, reserved: 0 },
        ...{ used: counter?.countAt(now) ?? 0, windowSeconds: windowMs[rule.per] / 1000 },
        freesTo: (used) => counters.windows.find(id, rule.per, scopeOf(rule))?.fallsTo(used, now) ?? now,
      };
    }
    case "jobs": {
      const used = counters.jobs.openCount(id, coversRule);
      const limit = rule.limit + grant;
      const scope = `${of}at the same time`;
      return {
        ...{ name, unit: rule.unit, scope, limit, used, reserved: 0, windowSeconds: undefined },
        freesTo: () => undefined,
      };
    }
    case "usd": {
      const { used, reserved } = counters.spending.spent(id, rule.per, now, coversRule);
      const end = endOf(rule.per, now);
      return {
        ...{ name, unit: rule.unit, scope: `${of}of this ${rule.per}`, limit: microUsd(rule.limit) + grant },
        ...{ used, reserved, windowSeconds: (end - startOf(rule.per, now)) / 1000 },
        freesTo: () => end,
      };
    }
  }
}

/** What a token may spend in all. */
function costStanding(account: string, limit: number, { spending }: Counters): Standing {
  const { used, reserved } = spending.spent(account, "ever", 0, () => true);
  return {
    ...{ name: "token-cost", unit: "usd", scope: "of this token", limit, used, reserved, windowSeconds: undefined },
    freesTo: () => Number.POSITIVE_INFINITY,
  };
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
