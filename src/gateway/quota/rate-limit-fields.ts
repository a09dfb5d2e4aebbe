// `RateLimit-Policy` and `RateLimit` as draft-ietf-httpapi-ratelimit-headers-10 has them.
import type { Standing } from "./decide.ts";
import type { QuotaHeaders } from "./metering.ts";

/** The largest integer that a structured field may hold. */
const maxInteger = 999_999_999_999_999;
/** The draft's own units; requests are meant where none is named. */
const quotaUnits = { requests: undefined, jobs: "concurrent-requests", usd: "micro-usd" } as const;

export function rateLimitFields(standings: readonly Standing[], now: number): QuotaHeaders {
  return {
    policy: standings.map(policyItem).join(", "),
    limit: standings.map((standing) => limitItem(standing, now)).join(", "),
  };
}

function policyItem({ name, unit, limit, windowSeconds }: Standing): string {
  const quotaUnit = quotaUnits[unit];
  return [
    `"${name}";q=${whole(limit)}`,
    ...(quotaUnit ? [`qu="${quotaUnit}"`] : []),
    ...(windowSeconds === undefined ? [] : [`w=${windowSeconds}`]),
  ].join(";");
}

/** `t` says when something becomes free; where only a job's end frees it, nobody knows. */
function limitItem({ name, limit, used, freesTo }: Standing, now: number): string {
  const at = used > 0 ? freesTo(Math.min(used, limit) - 1) : undefined;
  const known = at !== undefined && Number.isFinite(at);
  return `"${name}";r=${whole(limit - used)}${known ? `;t=${whole(Math.ceil((at - now) / 1000))}` : ""}`;
}

function whole(value: number): number {
  return Math.min(Math.max(0, value), maxInteger);
}
