// A payer's meter as the routes call it. Where it cannot be reached, nothing goes on.
import { Problem } from "../../errors.ts";
import { type Remote, remote } from "../../wire/remote.ts";
import { type Budget, budgetName } from "./budget.ts";
import type { UserMeter } from "./user-meter.ts";

export function meterOf(env: Env, payer: string): Remote<UserMeter> {
  return remote<UserMeter>(env.USER_METER, payer);
}

export function budgetOf(env: Env): Remote<Budget> {
  return remote<Budget>(env.BUDGET, budgetName);
}

/** A call that failed says nothing of what it did: the caller may come again. */
export async function orUnavailable<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch {
    throw new Problem("METER_UNAVAILABLE", "The quota cannot be reached.", { "Retry-After": "1" });
  }
}
