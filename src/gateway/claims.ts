// What a caller's token says of the quota, as a meter asks it: the plan, and what the token narrows.
import type { GatewayEnv } from "./env.ts";
import type { Principal } from "./identity/principal.ts";
import { plansOf } from "./quota/admin-plans.ts";
import type { Claims } from "./quota/admissions.ts";
import type { PlanClaim } from "./quota/metering.ts";

export function claimsOf({
  config,
  control,
  principal,
}: Pick<GatewayEnv["Variables"], "config" | "control" | "principal">): Claims {
  const { plan = config.defaultPlan, tokenId, rules, maxCostMicroUsd } = principal;
  const narrows = rules !== undefined || maxCostMicroUsd !== undefined;
  return {
    plan,
    planFrom: planFrom(principal),
    plans: plansOf(control, config.local),
    token:
      narrows && tokenId !== undefined
        ? { id: tokenId, rules: rules ?? [], ...(maxCostMicroUsd !== undefined && { maxCostMicroUsd }) }
        : undefined,
  };
}

function planFrom({ kind, plan }: Principal): PlanClaim["planFrom"] {
  if (plan === undefined) return "default";
  return kind === "anonymous" ? "session" : "token";
}
