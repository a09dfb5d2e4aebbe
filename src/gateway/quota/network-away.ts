// The refusal if the meter of the caller's network cannot be reached.
import type { Refusal } from "./metering.ts";

export const networkAway: Refusal = {
  admitted: false,
  code: "METER_UNAVAILABLE",
  detail: "The quota of the caller's network cannot be asked.",
  retryAfterSeconds: 1,
};
