// Whether a request is admitted: a pure function of the rules, what of them is used, the request and the time.
import type { ErrorCode } from "../../errors.ts";
import type { Rule } from "../operator-settings/rules.ts";
import { usdText } from "./amounts.ts";

/** A rule and what one account has used of it, in whole units: requests, jobs, bytes, micro-USD. */
export interface RuleUsage {
  readonly name: string;
  readonly unit: Rule["unit"];
  /** What it counts, for people: "in a minute", "of this day". */
  readonly scope: string;
  /** With what the operator granted on top. */
  readonly limit: number;
  /** Reservations included. */
  readonly used: number;
  readonly reserved: number;
  readonly windowSeconds: number | undefined;
  /** When the usage falls to `used`. Undefined if only a job's end frees it, infinite if nothing does. */
  freesTo(used: number): number | undefined;
}

export interface Demand {
  readonly reserveMicroUsd: number;
  /** It joins another request's job, which has its place already. */
  readonly joined?: boolean;
  /** Of an upload. */
  readonly bytes?: number;
}

export type Verdict =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly rule: string;
      readonly code: ErrorCode;
      readonly detail: string;
      /** Undefined where waiting does not help. */
      readonly retryAfterSeconds: number | undefined;
    };
export type Refused = Extract<Verdict, { allowed: false }>;

/** A job may end at any time: come back soon. */
const soonSeconds = 1;

const codes = {
  requests: "RATE_LIMITED",
  jobs: "TOO_MANY_JOBS",
  usd: "QUOTA_EXCEEDED",
  bytes: "QUOTA_EXCEEDED",
  stored: "QUOTA_EXCEEDED",
} as const satisfies Record<Rule["unit"], ErrorCode>;

/** If several rules refuse, the one with the longest wait is told: coming back earlier would be in vain. */
export function decide(usages: readonly RuleUsage[], demand: Demand, now: number): Verdict {
  const refused = usages.flatMap((usage) => refusal(usage, demand, now) ?? []);
  return refused.reduce<Verdict>((worst, next) => (worst.allowed || waitOf(next) > waitOf(worst) ? next : worst), {
    allowed: true,
  });
}

const waitOf = ({ retryAfterSeconds }: Refused) => retryAfterSeconds ?? Number.POSITIVE_INFINITY;

function refusal(usage: RuleUsage, demand: Demand, now: number): Refused | undefined {
  const { unit, name, limit, used } = usage;
  const needed = neededOf(usage, demand);
  if (needed === 0 || used + needed <= limit) return undefined;
  const retryAfterSeconds = needed > limit ? undefined : waitFor(usage, needed, now);
  return { allowed: false, rule: name, code: codes[unit], detail: describe(usage, needed), retryAfterSeconds };
}

/** What a request takes of a rule. */
export function neededOf({ unit }: RuleUsage, { reserveMicroUsd, joined, bytes = 0 }: Demand): number {
  if (joined && unit === "jobs") return 0;
  if (unit === "bytes" || unit === "stored") return bytes;
  return unit === "usd" ? reserveMicroUsd : 1;
}

/** How many requests like this one the rules admit now. */
export function timesAdmitted(usages: readonly RuleUsage[], demand: Demand): number {
  let times = Number.POSITIVE_INFINITY;
  for (const usage of usages) {
    const needed = neededOf(usage, demand);
    if (needed > 0) times = Math.min(times, Math.floor((usage.limit - usage.used) / needed));
  }
  return times;
}

function waitFor({ limit, used, reserved, freesTo }: RuleUsage, needed: number, now: number): number | undefined {
  if (reserved > 0 && used - reserved + needed <= limit) return soonSeconds;
  const at = freesTo(limit - needed) ?? now;
  return at === Number.POSITIVE_INFINITY ? undefined : Math.max(soonSeconds, Math.ceil((at - now) / 1000));
}

function describe({ unit, name, scope, limit, used }: RuleUsage, needed: number): string {
  if (unit === "bytes" || unit === "stored")
    return `${name}: ${needed} bytes would exceed the ${limit} bytes ${scope}, of which ${used} are used`;
  if (unit !== "usd") return `${name}: more than ${limit} ${unit} ${scope}`;
  const ceiling = `the ${usdText(limit)} USD ${scope}, of which ${usdText(used)} are used`;
  return `${name}: ${usdText(needed)} USD would exceed ${ceiling}`;
}
