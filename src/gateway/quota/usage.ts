// What of every rule is used, as users and operators read it.
import * as z from "zod";
import { units } from "../operator-settings/rules.ts";
import { payersAccount } from "./account.ts";
import type { HeldPlan } from "./account-settings.ts";
import { microUsdAsUsd } from "./amounts.ts";
import type { RuleUsage } from "./decide.ts";
import type { Amounts } from "./job.ts";
import type { MeterStores } from "./meter-stores.ts";

export interface LimitUsage {
  readonly name: string;
  readonly unit: RuleUsage["unit"];
  readonly limit: number;
  readonly used: number;
  readonly reserved: number;
  readonly resetsAt: number | null;
}

/** Micro-USD, since the first job or the last long silence; and the jobs that take a place now. */
export interface MeterTotals extends Amounts {
  readonly jobs: number;
}

export function totalsOf({ counters }: MeterStores): MeterTotals {
  return { ...counters.payer.money.amounts("ever", 0), jobs: counters.places(payersAccount, () => true) };
}

export interface MeterUsage extends HeldPlan {
  readonly limits: readonly LimitUsage[];
  readonly totals: Amounts;
}

export function describeUsage(stores: MeterStores, held: HeldPlan, usages: readonly RuleUsage[]): MeterUsage {
  return {
    ...held,
    limits: usages.map(describeLimit),
    totals: stores.counters.payer.money.amounts("ever", 0),
  };
}

function describeLimit({ name, unit, limit, used, reserved, freesTo }: RuleUsage): LimitUsage {
  const at = used > 0 || unit === "usd" ? freesTo(0) : undefined;
  return { name, unit, limit, used, reserved, resetsAt: at !== undefined && Number.isFinite(at) ? at : null };
}

export const limitSchema = z
  .object({
    name: z.string(),
    unit: z.enum(units),
    limit: z.number(),
    used: z.number().describe("Reservations included."),
    reserved: z.number().describe("Held for open jobs and uploads; becomes what they take."),
    remaining: z.number(),
    resetsAt: z.iso.datetime().nullable().describe("When nothing of it is used any longer; null where nobody knows."),
  })
  .meta({ id: "Limit" });

export const spentSchema = z.object({ usd: z.number(), assumedUsd: z.number(), reservedUsd: z.number() }).meta({
  id: "Spent",
  description: "Since the first job, or since 70 days of silence; what no answer told is assumed.",
});

/** Money in USD, dates as ISO 8601. */
export function renderLimit({ name, unit, limit, used, reserved, resetsAt }: LimitUsage): z.output<typeof limitSchema> {
  const shown = (amount: number) => (unit === "usd" ? microUsdAsUsd(amount) : amount);
  return {
    name,
    unit,
    limit: shown(limit),
    used: shown(used),
    reserved: shown(reserved),
    remaining: shown(Math.max(0, limit - used)),
    resetsAt: resetsAt === null ? null : new Date(resetsAt).toISOString(),
  };
}

export function renderSpent({ known, assumed, reserved }: MeterUsage["totals"]): z.output<typeof spentSchema> {
  return {
    usd: microUsdAsUsd(known + assumed),
    assumedUsd: microUsdAsUsd(assumed),
    reservedUsd: microUsdAsUsd(reserved),
  };
}
