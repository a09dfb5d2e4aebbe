// What an ended job is charged: decision 2's rules, as a pure function.
import type { JobState } from "../../contract/states.ts";

export interface Charge {
  readonly microUsd: number;
  /** No answer said so: a later truth corrects it. */
  readonly assumed: boolean;
}

/** A cost that cannot be true counts as none; one far above the estimate counts as it is. */
export function chargeOf(
  status: JobState,
  cost: unknown,
  reservedMicroUsd: number,
  handedOutMicroUsd = reservedMicroUsd,
): Charge {
  const truth = trueCost(cost);
  switch (status) {
    case "FAILED":
    case "TIMED_OUT":
      return { microUsd: 0, assumed: false };
    case "CANCELLED":
      return { microUsd: truth ?? 0, assumed: truth === undefined };
    default:
      return { microUsd: truth ?? Math.min(handedOutMicroUsd, reservedMicroUsd), assumed: truth === undefined };
  }
}

function trueCost(cost: unknown): number | undefined {
  if (typeof cost !== "number" || !(cost >= 0)) return undefined;
  const whole = Math.round(cost);
  return Number.isSafeInteger(whole) ? whole + 0 : undefined;
}

/** The upstream knows the job no more, or was never reached: what it last said decides. */
export function assumeCharge(seen: JobState | null, reservedMicroUsd: number): Charge {
  return { microUsd: seen === "IN_QUEUE" ? 0 : reservedMicroUsd, assumed: true };
}

/** An estimate so wrong is worth a line in the log. */
const farOff = 10;

export function isFarOff({ microUsd, assumed }: Charge, reservedMicroUsd: number): boolean {
  return !assumed && microUsd > reservedMicroUsd * farOff;
}
