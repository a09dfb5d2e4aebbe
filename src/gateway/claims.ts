// What a caller's token says of the quota, as a meter asks it: the plan, and what the token narrows.
import type { GatewayEnv } from "./env.ts";
import { networkOf } from "./identity/address.ts";
import { hasCeiling } from "./operator-ceiling.ts";
import { plansOf } from "./quota/admin-plans.ts";
import type { Terms } from "./quota/metering.ts";

export function claimsOf({
  config,
  control,
  principal,
}: Pick<GatewayEnv["Variables"], "config" | "control" | "principal">): Terms {
  const { plan = config.defaultPlan, tokenId, rules, maxCostMicroUsd } = principal;
  const network = principal.kind === "anonymous" ? networkOf(principal.payer) : undefined;
  const narrows = rules !== undefined || maxCostMicroUsd !== undefined;
  return {
    plan,
    plans: plansOf(control),
    token:
      narrows && tokenId !== undefined
        ? { id: tokenId, rules: rules ?? [], ...(maxCostMicroUsd !== undefined && { maxCostMicroUsd }) }
        : undefined,
    hasCeiling: hasCeiling(config, control),
    ...(network !== undefined && { network }),
  };
}
