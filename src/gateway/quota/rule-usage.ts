// How much of each rule is used, by the meter's counters.
import { microUsd } from "../../micro-usd.ts";
import { modelsOf, type Rule } from "../operator-settings/rules.ts";
import { type Account, windowKey } from "./account.ts";
import { type AppliedRule, appliedRules, type RuleTarget } from "./applied-rules.ts";
import type { Counters } from "./counters.ts";
import type { RuleUsage } from "./decide.ts";
import { endOf, startOf, windowMs } from "./periods.ts";
import type { UploadRows } from "./upload-rows.ts";

/** What rules are held against. */
export interface Counted {
  readonly counters: Counters;
  readonly uploads: UploadRows;
}

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
export function usagesOf(subject: Subject, counted: Counted, target: RuleTarget | undefined, now: number): RuleUsage[] {
  const rules = appliedRules(subject.id, subject.rules, target);
  const usages = rules.map((rule) => usageOf(rule, subject, counted, now));
  if (subject.maxCostMicroUsd !== undefined) usages.push(costUsage(subject.account, subject.maxCostMicroUsd));
  return usages;
}

function usageOf(
  { rule, name, scope, covers }: AppliedRule,
  { id, account, granted }: Subject,
  { counters, uploads }: Counted,
  now: number,
): RuleUsage {
  const { unit } = rule;
  const grant = granted?.[unit] ?? 0;
  const models = modelsOf(rule);
  const of = models ? `of ${models.join(", ")} ` : "";
  switch (unit) {
    case "requests": {
      const key = windowKey(rule.per, scope);
      const used = account?.window(key)?.countAt(now) ?? 0;
      // Read again: a token's first request has made its account since.
      const freesTo = (left: number) => counters.account(id)?.window(key)?.fallsTo(left, now) ?? now;
      const windowSeconds = windowMs[rule.per] / 1000;
      return {
        name,
        unit,
        scope: `${of}in a ${rule.per}`,
        limit: rule.limit + grant,
        used,
        reserved: 0,
        windowSeconds,
        freesTo,
      };
    }
    case "jobs": {
      const used = counters.places(id, covers);
      return {
        name,
        unit,
        scope: `${of}at the same time`,
        limit: rule.limit + grant,
        used,
        reserved: 0,
        windowSeconds: undefined,
        freesTo: unforeseen,
      };
    }
    case "usd": {
      const { used, reserved } = account?.money.spent(rule.per, now, covers) ?? unspent;
      const end = endOf(rule.per, now);
      const windowSeconds = (end - startOf(rule.per, now)) / 1000;
      return {
        name,
        unit,
        scope: `${of}of this ${rule.per}`,
        limit: microUsd(rule.limit) + grant,
        used,
        reserved,
        windowSeconds,
        freesTo: () => end,
      };
    }
    case "bytes": {
      const amounts = uploads.counts.uploaded(id, rule.per, now);
      const end = endOf(rule.per, now);
      const windowSeconds = (end - startOf(rule.per, now)) / 1000;
      return {
        name,
        unit,
        scope: `of this ${rule.per}`,
        limit: rule.limit + grant,
        ...amounts,
        windowSeconds,
        freesTo: () => end,
      };
    }
    case "stored": {
      const amounts = uploads.counts.stored(id);
      const freesTo = () => uploads.nextDue();
      return {
        name,
        unit,
        scope: "kept at the same time",
        limit: rule.limit + grant,
        ...amounts,
        windowSeconds: undefined,
        freesTo,
      };
    }
  }
}

/** A job's end frees it. */
const unforeseen = () => undefined;

/** What a token may spend in all. */
function costUsage(account: Account | undefined, limit: number): RuleUsage {
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
