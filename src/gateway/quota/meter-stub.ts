// A payer's meter as the routes call it. Where it cannot be reached, nothing goes on.

import { answersWithinMs, type Remote, remote, timed } from "../../durable/remote.ts";
import { Problem } from "../../errors.ts";
import { type Budget, budgetName } from "./budget.ts";
import type { UserMeter } from "./user-meter.ts";

export function meterOf(env: Pick<Env, "USER_METER">, payer: string): Remote<UserMeter> {
  return remote<UserMeter>(env.USER_METER, payer, answersWithinMs.needed);
}

/** By the object's own id, which a notice's address names. */
export function meterById({ USER_METER }: Pick<Env, "USER_METER">, id: string): Remote<UserMeter> {
  const stub = USER_METER.get(USER_METER.idFromString(id)) as unknown as Remote<UserMeter>;
  return timed(stub, answersWithinMs.needed);
}

export function budgetOf(env: Env): Remote<Budget> {
  return remote<Budget>(env.BUDGET, budgetName, answersWithinMs.needed);
}

/** A call that failed says nothing of what it did: the caller may come again. */
export async function orUnavailable<T>(call: Promise<T>, detail = "The quota cannot be reached."): Promise<T> {
  try {
    return await call;
  } catch {
    throw new Problem("METER_UNAVAILABLE", detail, { "Retry-After": "1" });
  }
}
