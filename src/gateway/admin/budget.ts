// `/admin/budget`: the ceiling of the whole app, what of it is spent, and what is leased.
import * as z from "zod";
import { microUsd } from "../../micro-usd.ts";
import { gatewayRoute } from "../gateway-route.ts";
import { tellCeiling } from "../operator-settings/ceiling.ts";
import { usdSchema } from "../operator-settings/rules.ts";
import { microUsdAsUsd } from "../quota/amounts.ts";
import type { BudgetState, RecountedDay } from "../quota/budget.ts";
import { budgetOf, orUnavailable } from "../quota/meter-stub.ts";
import { dayMs } from "../quota/periods.ts";

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

const path = "/admin/budget";
const errors = ["UNAUTHORIZED", "METER_UNAVAILABLE"] as const;
const onBudget = { access: "operator", path, answer: budgetAnswerSchema, errors } as const;

/** They stand behind `operatorOnly`. */
export const budgetRoutes = [
  gatewayRoute(
    { ...onBudget, method: "get", summary: "The app's budget, and what is used of it" },
    [],
    async ({ env }) => Response.json(render(await orUnavailable(budgetOf(env).state()))),
  ),
  gatewayRoute(
    { ...onBudget, method: "put", summary: "Set the app's budget, for everybody within a minute", json: budgetSchema },
    [],
    async ({ env }, { json: { dayUsd, monthUsd } }) => {
      const inMicro = (usd: number | null) => (usd === null ? null : microUsd(usd));
      const budget = budgetOf(env);
      await orUnavailable(budget.setCeilings({ dayMicroUsd: inMicro(dayUsd), monthMicroUsd: inMicro(monthUsd) }));
      await orUnavailable(tellCeiling(env, dayUsd !== null || monthUsd !== null));
      return Response.json(render(await orUnavailable(budget.state())));
    },
  ),
  gatewayRoute(
    {
      ...onBudget,
      method: "post",
      path: `${path}/recount`,
      summary: "Sum up anew what the meters reported of the last days",
      answer: recountedSchema,
    },
    [],
    async ({ env }) => {
      const off = await orUnavailable(budgetOf(env).recount());
      return Response.json({ off: off.map(renderRecounted) });
    },
  ),
];

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
  return {
    dayUsd: inUsd(ceilings.dayMicroUsd),
    monthUsd: inUsd(ceilings.monthMicroUsd),
    day: period(day),
    month: period(month),
  };
}
