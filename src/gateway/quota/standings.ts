// How the rules stand: each with what is used of it, as the meter's counters have it.
import { microUsd, type Rule } from "../rules.ts";
import { type AppliedRule, appliedRules, type Target } from "./applied-rules.ts";
import type { Standing } from "./decide.ts";
import type { MeteredJobs } from "./metered-jobs.ts";
import { endOf, startOf, windowMs } from "./periods.ts";
import type { RequestWindows } from "./request-windows.ts";
import type { Spending } from "./spending.ts";

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

/** Of the rules that a request for the target would meet; of all of them where there is no target. */
export function standingsOf(account: Account, counters: Counters, target: Target | undefined, now: number): Standing[] {
  const rules = appliedRules(account.id, account.rules, target);
  const standings = rules.map((rule) => standingOf(rule, account, counters, now));
  if (account.maxCostMicroUsd !== undefined) {
    standings.push(costStanding(account.id, account.maxCostMicroUsd, counters));
  }
  return standings;
}

function standingOf(
  { rule, name, scope, covers }: AppliedRule,
  account: Account,
  counters: Counters,
  now: number,
): Standing {
  const { id, granted } = account;
  const { unit } = rule;
  const grant = granted?.[unit] ?? 0;
  const of = rule.models ? `of ${rule.models.join(", ")} ` : "";
  switch (unit) {
    case "requests": {
      const find = () => counters.windows.find(id, rule.per, scope);
      const used = find()?.countAt(now) ?? 0;
      const freesTo = (left: number) => find()?.fallsTo(left, now) ?? now;
      const windowSeconds = windowMs[rule.per] / 1000;
      const [limit, words] = [rule.limit + grant, `${of}in a ${rule.per}`];
      return { name, unit, scope: words, limit, used, reserved: 0, windowSeconds, freesTo };
    }
    case "jobs": {
      const used = counters.jobs.openCount(id, covers);
      const [limit, words] = [rule.limit + grant, `${of}at the same time`];
      return { name, unit, scope: words, limit, used, reserved: 0, windowSeconds: undefined, freesTo: unforeseen };
    }
    case "usd": {
      const { used, reserved } = counters.spending.spent(id, rule.per, now, covers);
      const end = endOf(rule.per, now);
      const windowSeconds = (end - startOf(rule.per, now)) / 1000;
      const [limit, words] = [microUsd(rule.limit) + grant, `${of}of this ${rule.per}`];
      return { name, unit, scope: words, limit, used, reserved, windowSeconds, freesTo: () => end };
    }
  }
}

/** A job's end frees it. */
const unforeseen = () => undefined;

/** What a token may spend in all. */
function costStanding(account: string, limit: number, { spending }: Counters): Standing {
  const { used, reserved } = spending.spent(account, "ever", 0, () => true);
  return {
    ...{ name: "token-cost", unit: "usd", scope: "of this token", limit, used, reserved, windowSeconds: undefined },
    freesTo: () => Number.POSITIVE_INFINITY,
  };
}
