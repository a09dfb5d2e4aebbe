// `/admin/plans/:plan`: the operator's plans, kept in CONTROL. One with a built-in plan's name overrides it.
import * as z from "zod";
import { Problem } from "../../errors.ts";
import type { Call } from "../call.ts";
import { gatewayRoute } from "../gateway-route.ts";
import { askControl, readControlAnew } from "../operator-settings/control-reader.ts";
import { demandKnown, unknownName } from "../operator-settings/known-names.ts";
import { findPlan, operatorsPlans, type PlansByName, plansWithoutOperator } from "../operator-settings/plans.ts";
import { planNameSchema, rulesSchema } from "../operator-settings/rules.ts";

const planParam = z.object({ plan: planNameSchema });
const planSchema = z.strictObject({ rules: rulesSchema }).meta({ id: "Plan" });
const planAnswerSchema = planSchema.extend({ plan: z.string() }).meta({ id: "PlanOf" });

const plansSchema = z.object({ plans: z.array(planAnswerSchema) });
const path = "/admin/plans/:plan";
const onPlan = { access: "operator", params: planParam, answer: planAnswerSchema } as const;
const errors = ["UNAUTHORIZED", "CONTROL_UNAVAILABLE"] as const;
const all = { access: "operator", path: "/admin/plans", answer: plansSchema, errors } as const;

/** They stand behind `operatorOnly`. */
export const planRoutes = [
  gatewayRoute({ ...all, method: "get", summary: "Every plan's rules" }, [], async (call) => {
    const plans = await allPlans(call);
    return Response.json({ plans: Object.entries(plans).map(([plan, rules]) => ({ plan, rules })) });
  }),
  gatewayRoute(
    { ...onPlan, method: "get", path, summary: "A plan's rules", errors: [...errors, "NOT_FOUND"] },
    [],
    async (call, { params: { plan } }) => {
      const plans = await allPlans(call);
      const rules = findPlan(plans, plan);
      if (!rules) throw new Problem("NOT_FOUND", unknownName("plan", plan, Object.keys(plans)));
      return Response.json({ plan, rules });
    },
  ),
  gatewayRoute(
    {
      ...onPlan,
      method: "put",
      path,
      summary: "Set a plan's rules, for everybody within 20 s",
      json: planSchema,
      errors,
    },
    [],
    async (call, { params: { plan }, json: { rules } }) => {
      await demandKnown(call, { rules });
      await askControl(call.env, (control) => control.setPlan(plan, { rules }));
      return Response.json({ plan, rules });
    },
  ),
];

async function allPlans(call: Call): Promise<PlansByName> {
  return { ...plansWithoutOperator(call.config.local), ...operatorsPlans(await readControlAnew(call)) };
}
