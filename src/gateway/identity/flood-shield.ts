// The flood shield: counts a payer's requests at the edge before anything costs. It is coarse, and never the quota.
import { Problem } from "../../errors.ts";
import type { Guard } from "../gateway-route.ts";

const windowSeconds = 10;

/** Stands behind `authenticate`. A shield that cannot be reached lets everybody through: the meter still counts. */
export const floodShield: Guard = async ({ env, principal }) => {
  let isWithinLimit = true;
  try {
    isWithinLimit = (await env.FLOOD.limit({ key: principal.payer })).success;
  } catch {
    console.error(JSON.stringify({ binding: "FLOOD", problem: "cannot be reached" }));
  }
  if (!isWithinLimit) {
    throw new Problem("RATE_LIMITED", "flood: too many requests at once", { "Retry-After": String(windowSeconds) });
  }
};
