// What a caller's token says of the quota, as a meter asks it: the plan, and what the token narrows.
import type { Call } from "../call.ts";
import { networkOf } from "../identity/address.ts";
import type { Principal } from "../identity/principal.ts";
import { hasCeiling } from "../operator-settings/ceiling.ts";
import { plansOf } from "../operator-settings/plans.ts";
import type { PlanClaim, Terms } from "./metering.ts";

export function claimsOf({ config, control, principal }: Pick<Call, "config" | "control" | "principal">): Terms {
  const { plan = config.defaultPlan, tokenId, rules, maxCostMicroUsd } = principal;
  const network = principal.kind === "anonymous" ? networkOf(principal.payer) : undefined;
  const narrows = rules !== undefined || maxCostMicroUsd !== undefined;
  return {
    plan,
    planFrom: planFrom(principal),
    plans: plansOf(control, config.local),
    token:
      narrows && tokenId !== undefined
        ? { id: tokenId, rules: rules ?? [], ...(maxCostMicroUsd !== undefined && { maxCostMicroUsd }) }
        : undefined,
    hasCeiling: hasCeiling(config, control),
    ...(network !== undefined && { network }),
  };
}

function planFrom({ kind, plan }: Principal): PlanClaim["planFrom"] {
  if (plan === undefined) return "default";
  return kind === "anonymous" ? "session" : "token";
}
