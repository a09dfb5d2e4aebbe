// What the operator sees of a payer: the plan that holds, what was set, what is used.

import { isNetworkPayer } from "../identity/owners.ts";
import type { AccountSettings } from "./account-settings.ts";
import type { Admissions } from "./admissions.ts";
import type { MeterStores } from "./meter-stores.ts";
import { describeUsage, type MeterUsage } from "./usage.ts";

export interface PayerView extends MeterUsage {
  readonly settings: AccountSettings;
  readonly revokedAt: number | undefined;
}

/** What holds for a payer whose token is not at hand. */
export interface PlanDefaults {
  readonly defaultPlan: string;
  readonly plans: string;
}

/** Uses the plan that the payer's last token claimed, or else the default plan. Undefined for an unknown payer. */
export function viewPayer(
  stores: MeterStores,
  admissions: Admissions,
  owner: string,
  { defaultPlan, plans }: PlanDefaults,
  now: number,
): PayerView | undefined {
  if (!stores.isBorn) return undefined;
  const claim = stores.lastClaim ?? ({ plan: defaultPlan, planFrom: "default" } as const);
  const claims = { ...claim, plans, token: undefined };
  const usages = admissions.usages(claims, now, isNetworkPayer(owner) ? "network" : undefined);
  const usage = describeUsage(stores, stores.settings.held(claims), usages);
  return { ...usage, settings: stores.settings.current, revokedAt: stores.revocations.revokedAt(owner) };
}
