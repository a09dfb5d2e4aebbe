// `/admin/budget`: the ceiling of the whole app, what of it is spent, and what is leased.

import { Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { bodyErrors } from "../../wire/body-problem.ts";
import { readSmallJson } from "../../wire/small-body.ts";
import type { GatewayEnv } from "../env.ts";
import { budgetOf, orUnavailable } from "../meter-stub.ts";
import { tellCeiling } from "../operator-ceiling.ts";
import { microUsd, usdSchema } from "../rules.ts";
import { microUsdAsUsd } from "./amounts.ts";
import type { BudgetState, RecountedDay } from "./budget.ts";
import { dayMs } from "./periods.ts";

const ceiling = usdSchema.nullable().describe("Null is no ceiling.");
const budgetSchema = z.strictObject({ dayUsd: ceiling, monthUsd: ceiling }).meta({ id: "Budget" });
const periodSchema = z.object({
  usedUsd: z.number().describe("Spent and reserved, as meters said it at most a minute ago."),
  leasedUsd: z.number().describe("Handed to meters on top, and not used as far as is known."),
  resetsAt: z.iso.datetime(),
});
const budgetAnswerSchema = budgetSchema.extend({ day: periodSchema, month: periodSchema }).meta({ id: "BudgetState" });
const recountedSchema = z
  .object({
    off: z
      .array(z.object({ day: z.iso.date(), wasUsd: z.number(), isUsd: z.number() }))
      .describe("Days whose sum was not that of the meters' reports. Those of the last nine days are kept."),
  })
  .meta({ id: "BudgetRecount" });

/** Stands behind `operatorOnly`. */
export const budgetRoutes = new Hono<GatewayEnv>()
  .get("/admin/budget", async (c) => c.json(render(await orUnavailable(budgetOf(c.env).state()))))
  .put("/admin/budget", async (c) => {
    const { dayUsd, monthUsd } = await readSmallJson(c.req.raw, budgetSchema);
    const inMicro = (usd: number | null) => (usd === null ? null : microUsd(usd));
    const budget = budgetOf(c.env);
    await orUnavailable(budget.setCeilings({ dayMicroUsd: inMicro(dayUsd), monthMicroUsd: inMicro(monthUsd) }));
    await orUnavailable(tellCeiling(c.env, dayUsd !== null || monthUsd !== null));
    return c.json(render(await orUnavailable(budget.state())));
  })
  .post("/admin/budget/recount", async (c) => {
    const off = await orUnavailable(budgetOf(c.env).recount());
    return c.json({ off: off.map(renderRecounted) });
  });

function renderRecounted({ day, wasMicroUsd, isMicroUsd }: RecountedDay): z.output<typeof recountedSchema>["off"][0] {
  const date = new Date(day * dayMs).toISOString().slice(0, "2000-01-01".length);
  return { day: date, wasUsd: microUsdAsUsd(wasMicroUsd), isUsd: microUsdAsUsd(isMicroUsd) };
}

function render({ ceilings, day, month }: BudgetState): z.output<typeof budgetAnswerSchema> {
  const inUsd = (micro: number | null) => (micro === null ? null : microUsdAsUsd(micro));
  const period = ({ consumedMicroUsd, leasedMicroUsd, endsAt }: BudgetState["day"]) => ({
    usedUsd: microUsdAsUsd(consumedMicroUsd),
    leasedUsd: microUsdAsUsd(leasedMicroUsd),
    resetsAt: new Date(endsAt).toISOString(),
  });
  const limits = { dayUsd: inUsd(ceilings.dayMicroUsd), monthUsd: inUsd(ceilings.monthMicroUsd) };
  return { ...limits, day: period(day), month: period(month) };
}

export const budgetOperations: readonly Operation[] = [
  {
    method: "get",
    path: "/admin/budget",
    summary: "The app's budget, and what is used of it",
    access: "operator",
    answer: budgetAnswerSchema,
    errors: ["UNAUTHORIZED", "METER_UNAVAILABLE"],
  },
  {
    method: "post",
    path: "/admin/budget/recount",
    summary: "Sum up anew what the meters reported of the last days",
    access: "operator",
    answer: recountedSchema,
    errors: ["UNAUTHORIZED", "METER_UNAVAILABLE"],
  },
  {
    method: "put",
    path: "/admin/budget",
    summary: "Set the app's budget, for everybody within a minute",
    access: "operator",
    body: budgetSchema,
    answer: budgetAnswerSchema,
    errors: [...bodyErrors, "INVALID_REQUEST", "UNAUTHORIZED", "METER_UNAVAILABLE"],
  },
];
