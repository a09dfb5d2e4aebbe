// What a metered answer says of its caller's quota, in the fields of the IETF's draft.
import type { QuotaHeaders } from "../quota/metering.ts";

export function setQuota(headers: Headers, quota: QuotaHeaders | undefined): void {
  if (!quota) return;
  if (quota.policy !== "") headers.set("RateLimit-Policy", quota.policy);
  if (quota.limit !== "") headers.set("RateLimit", quota.limit);
}
