// Whether a request is admitted: a pure function of the rules, what of them is used, the request and the time.
import type { ErrorCode } from "../../errors.ts";
import type { Rule } from "../rules.ts";
import { usdText } from "./amounts.ts";

/** A rule as it stands for one account, in whole units: requests, jobs, micro-USD. */
export interface Standing {
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
  /** When no more than this is used any longer; undefined where a job's end frees it, infinite where nothing does. */
  freesTo(used: number): number | undefined;
}

export interface Asked {
  readonly reserveMicroUsd: number;
  /** It rides on a job that has its place already. */
  readonly joined?: boolean;
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

/** A job's end is not foreseen: come back soon. */
const soonSeconds = 1;

const codes = { requests: "RATE_LIMITED", jobs: "TOO_MANY_JOBS", usd: "QUOTA_EXCEEDED" } as const satisfies Record<
  Rule["unit"],
  ErrorCode
>;

/** Of several rules in the way the one that lasts longest is told, so that nobody comes back in vain. */
export function decide(standings: readonly Standing[], asked: Asked, now: number): Verdict {
  const refused = standings.flatMap((standing) => refusal(standing, asked, now) ?? []);
  return refused.reduce<Verdict>((worst, next) => (worst.allowed || waitOf(next) > waitOf(worst) ? next : worst), {
    allowed: true,
  });
}

const waitOf = ({ retryAfterSeconds }: Refused) => retryAfterSeconds ?? Number.POSITIVE_INFINITY;

function refusal(standing: Standing, asked: Asked, now: number): Refused | undefined {
  const { unit, name, limit, used } = standing;
  const needed = neededOf(standing, asked);
  if (needed === 0 || used + needed <= limit) return undefined;
  const retryAfterSeconds = needed > limit ? undefined : waitFor(standing, needed, now);
  return { allowed: false, rule: name, code: codes[unit], detail: describe(standing, needed), retryAfterSeconds };
}

/** What a request takes of a rule. */
export function neededOf({ unit }: Standing, { reserveMicroUsd, joined }: Asked): number {
  if (joined && unit === "jobs") return 0;
  return unit === "usd" ? reserveMicroUsd : 1;
}

function waitFor({ limit, used, reserved, freesTo }: Standing, needed: number, now: number): number | undefined {
  if (reserved > 0 && used - reserved + needed <= limit) return soonSeconds;
  const at = freesTo(limit - needed) ?? now;
  return at === Number.POSITIVE_INFINITY ? undefined : Math.max(soonSeconds, Math.ceil((at - now) / 1000));
}

function describe({ unit, name, scope, limit, used }: Standing, needed: number): string {
  if (unit !== "usd") return `${name}: more than ${limit} ${unit} ${scope}`;
  const ceiling = `the ${usdText(limit)} USD ${scope}, of which ${usdText(used)} are used`;
  return `${name}: ${usdText(needed)} USD would exceed ${ceiling}`;
}
