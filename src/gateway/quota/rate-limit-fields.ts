// `RateLimit-Policy` and `RateLimit`, as draft-ietf-httpapi-ratelimit-headers-10 defines them.
import type { RuleUsage } from "./decide.ts";
import type { QuotaHeaders } from "./metering.ts";

/** The largest integer that a structured field may hold. */
const maxInteger = 999_999_999_999_999;
/** The draft's own units; requests are meant where none is named. */
const quotaUnits = {
  requests: undefined,
  jobs: "concurrent-requests",
  usd: "micro-usd",
  bytes: "content-bytes",
  stored: "stored-bytes",
} as const;

/** `taken` is what a request took that was admitted after the usages were read. */
export function rateLimitFields(
  usages: readonly RuleUsage[],
  now: number,
  taken: (usage: RuleUsage) => number = () => 0,
): QuotaHeaders {
  let [policy, limit, separator] = ["", "", ""];
  for (const usage of usages) {
    policy += separator + policyItem(usage);
    limit += separator + limitItem(usage, usage.used + taken(usage), now);
    separator = ", ";
  }
  return { policy, limit };
}

function policyItem({ name, unit, limit, windowSeconds }: RuleUsage): string {
  const quotaUnit = quotaUnits[unit];
  const window = windowSeconds === undefined ? "" : `;w=${windowSeconds}`;
  return `"${name}";q=${whole(limit)}${quotaUnit ? `;qu="${quotaUnit}"` : ""}${window}`;
}

/** `t` says when something becomes free. It is left out if only a job's end frees it. */
function limitItem({ name, limit, freesTo }: RuleUsage, used: number, now: number): string {
  const at = used > 0 ? freesTo(Math.min(used, limit) - 1) : undefined;
  const known = at !== undefined && Number.isFinite(at);
  return `"${name}";r=${whole(limit - used)}${known ? `;t=${whole(Math.ceil((at - now) / 1000))}` : ""}`;
}

function whole(value: number): number {
  return Math.min(Math.max(0, value), maxInteger);
}
