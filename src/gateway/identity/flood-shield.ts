// The flood shield: counts a payer's requests at the edge before anything costs. It is coarse, and never the quota.
import { Problem } from "../../errors.ts";
import type { Guard } from "../gateway-route.ts";

const windowSeconds = 10;

/** Stands behind `authenticate`. A shield that cannot be reached lets everybody through: the meter still counts. */
export const floodShield: Guard = async ({ env, principal }) => {
  if (!(await isWithinLimit(env.FLOOD, principal.payer))) {
    throw new Problem("RATE_LIMITED", "flood: too many requests at once", { "Retry-After": String(windowSeconds) });
  }
};

async function isWithinLimit(shield: RateLimit, payer: string): Promise<boolean> {
  try {
    return (await shield.limit({ key: payer })).success;
  } catch {
    console.error(JSON.stringify({ binding: "FLOOD", problem: "cannot be reached" }));
    return true;
  }
}
