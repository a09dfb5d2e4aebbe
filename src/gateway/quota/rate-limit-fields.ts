// `RateLimit-Policy` and `RateLimit` as draft-ietf-httpapi-ratelimit-headers-10 has them.
import type { Standing } from "./decide.ts";
import type { QuotaHeaders } from "./metering.ts";

/** The largest integer that a structured field may hold. */
const maxInteger = 999_999_999_999_999;
/** The draft's own units; requests are meant where none is named. */
const quotaUnits = { requests: undefined, jobs: "concurrent-requests", usd: "micro-usd" } as const;

/** `taken` is what a request took that was admitted after the standings were read. */
export function rateLimitFields(
  standings: readonly Standing[],
  now: number,
  taken: (standing: Standing) => number = () => 0,
): QuotaHeaders {
  let [policy, limit, separator] = ["", "", ""];
  for (const standing of standings) {
    policy += separator + policyItem(standing);
    limit += separator + limitItem(standing, standing.used + taken(standing), now);
    separator = ", ";
  }
  return { policy, limit };
}

function policyItem({ name, unit, limit, windowSeconds }: Standing): string {
  const quotaUnit = quotaUnits[unit];
  const window = windowSeconds === undefined ? "" : `;w=${windowSeconds}`;
  return `"${name}";q=${whole(limit)}${quotaUnit ? `;qu="${quotaUnit}"` : ""}${window}`;
}

/** `t` says when something becomes free; where only a job's end frees it, nobody knows. */
function limitItem({ name, limit, freesTo }: Standing, used: number, now: number): string {
  const at = used > 0 ? freesTo(Math.min(used, limit) - 1) : undefined;
  const known = at !== undefined && Number.isFinite(at);
  return `"${name}";r=${whole(limit - used)}${known ? `;t=${whole(Math.ceil((at - now) / 1000))}` : ""}`;
}

function whole(value: number): number {
  return Math.min(Math.max(0, value), maxInteger);
}
