// How the rules stand: each with what is used of it, as the meter's counters have it.
import { microUsd, type Rule } from "../rules.ts";
import { type Account, windowKey } from "./account.ts";
import { type AppliedRule, appliedRules, type Target } from "./applied-rules.ts";
import type { Counters } from "./counters.ts";
import type { Standing } from "./decide.ts";
import { endOf, startOf, windowMs } from "./periods.ts";

/** Whose rules they are: the payer's, or those of a token that narrows. */
export interface Subject {
  readonly id: string;
  /** Undefined where a token has used nothing yet. */
  readonly account: Account | undefined;
  readonly rules: readonly Rule[];
  readonly maxCostMicroUsd?: number | undefined;
  /** What the operator granted on top, by unit. */
  readonly granted?: Readonly<Partial<Record<Rule["unit"], number>>>;
}

/** Of the rules that a request for the target would meet; of all of them where there is no target. */
export function standingsOf(subject: Subject, counters: Counters, target: Target | undefined, now: number): Standing[] {
  const rules = appliedRules(subject.id, subject.rules, target);
  const standings = rules.map((rule) => standingOf(rule, subject, counters, now));
  if (subject.maxCostMicroUsd !== undefined) standings.push(costStanding(subject.account, subject.maxCostMicroUsd));
  return standings;
}

function standingOf(
  { rule, name, scope, covers }: AppliedRule,
  { id, account, granted }: Subject,
  counters: Counters,
  now: number,
): Standing {
  const { unit } = rule;
  const grant = granted?.[unit] ?? 0;
  const of = rule.models ? `of ${rule.models.join(", ")} ` : "";
  switch (unit) {
    case "requests": {
      const key = windowKey(rule.per, scope);
      const used = account?.window(key)?.countAt(now) ?? 0;
      const freesTo = (left: number) => account?.window(key)?.fallsTo(left, now) ?? now;
      const windowSeconds = windowMs[rule.per] / 1000;
      const [limit, words] = [rule.limit + grant, `${of}in a ${rule.per}`];
      return { name, unit, scope: words, limit, used, reserved: 0, windowSeconds, freesTo };
    }
    case "jobs": {
      const used = counters.places(id, covers);
      const [limit, words] = [rule.limit + grant, `${of}at the same time`];
      return { name, unit, scope: words, limit, used, reserved: 0, windowSeconds: undefined, freesTo: unforeseen };
    }
    case "usd": {
      const { used, reserved } = account?.money.spent(rule.per, now, covers) ?? unspent;
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
function costStanding(account: Account | undefined, limit: number): Standing {
  const { used, reserved } = account?.money.spent("ever", 0, () => true) ?? unspent;
  return {
    name: "token-cost",
    unit: "usd",
    scope: "of this token",
    limit,
    used,
    reserved,
    windowSeconds: undefined,
    freesTo: () => Number.POSITIVE_INFINITY,
  };
}

const unspent = { used: 0, reserved: 0 };
