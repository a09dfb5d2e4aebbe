// What the operator sees of a payer: the plan that holds, what was set, what is used.
import type { AccountSettings } from "./account-settings.ts";
import type { Admissions, Claims } from "./admissions.ts";
import type { MeterStores } from "./meter-stores.ts";
import { describeUsage, type MeterUsage } from "./usage.ts";

export interface MeterAccount extends MeterUsage {
  readonly settings: AccountSettings;
  readonly revokedAt: number | undefined;
}

/** Under what the last token said, else under the default plan. Undefined for a payer that nothing is known of. */
export function describeAccount(
  stores: MeterStores,
  admissions: Admissions,
  owner: string,
  { defaultPlan, plans }: { readonly defaultPlan: string; readonly plans: string },
  now: number,
): MeterAccount | undefined {
  const { settings, lastClaim, spending } = stores;
  const { known, assumed, reserved } = spending.totals();
  const isKnown = lastClaim.last !== undefined || settings.isTouched || known + assumed + reserved > 0;
  if (!isKnown) return undefined;
  const claim = lastClaim.last ?? { plan: defaultPlan, planFrom: "default" };
  const claims: Claims = { ...claim, plans, token: undefined };
  const usage = describeUsage(stores, settings.held(claims), admissions.standings(claims, now));
  return { ...usage, settings: settings.current, revokedAt: settings.revokedAt(owner) };
}
