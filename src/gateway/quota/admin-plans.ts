// `/admin/plans/:plan`: the operator's plans, kept in CONTROL; one of a built-in plan's name goes before it.

import { zValidator } from "@hono/zod-validator";
import { Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { Problem } from "../../errors.ts";
import { bodyErrors } from "../../wire/body-problem.ts";
import { orRefuse } from "../../wire/refusals.ts";
import { readSmallJson } from "../../wire/small-body.ts";
import type { ControlView } from "../control/control-view.ts";
import type { GatewayContext, GatewayEnv } from "../env.ts";
import { demandKnown, unknownName } from "../known-names.ts";
import { planNameSchema, type Rule, rulesSchema } from "../rules.ts";
import { findPlan, localPlans, type PlansByName, plansText, plansWithoutOperator } from "./plans.ts";

const planParam = z.object({ plan: planNameSchema });
const planSchema = z.strictObject({ rules: rulesSchema }).meta({ id: "Plan" });
const planAnswerSchema = planSchema.extend({ plan: z.string() }).meta({ id: "PlanOf" });

/** Where the operator's plans are kept. */
export interface PlanKeeper {
  all(c: GatewayContext): Promise<PlansByName>;
  set(env: Env, name: string, rules: Rule[]): Promise<void>;
}

const known = new WeakMap<ControlView, { version: number; plans: string }>();

/** The plans that are not built in as a meter is told them, made once for each version that the isolate reads. */
export function plansOf(control: ControlView, local: boolean): string {
  const made = known.get(control);
  if (made?.version === control.version) return made.plans;
  const plans = plansText({ ...localPlans(local), ...operatorsPlans(control) });
  known.set(control, { version: control.version, plans });
  return plans;
}

export function operatorsPlans(control: ControlView): PlansByName {
  return Object.fromEntries([...control.plans].map(([name, { rules }]) => [name, rules]));
}

/** Stand behind `operatorOnly`. */
export function planRoutes(keeper: PlanKeeper): Hono<GatewayEnv> {
  const routes = new Hono<GatewayEnv>();
  const allPlans = async (c: GatewayContext): Promise<PlansByName> => ({
    ...plansWithoutOperator(c.get("config").local),
    ...(await keeper.all(c)),
  });
  routes.get("/admin/plans", async (c) => {
    const plans = await allPlans(c);
    return c.json({ plans: Object.entries(plans).map(([plan, rules]) => ({ plan, rules })) });
  });
  routes.get("/admin/plans/:plan", zValidator("param", planParam, orRefuse), async (c) => {
    const { plan } = c.req.valid("param");
    const plans = await allPlans(c);
    const rules = findPlan(plans, plan);
    if (!rules) throw new Problem("NOT_FOUND", unknownName("plan", plan, Object.keys(plans)));
    return c.json({ plan, rules });
  });
  routes.put("/admin/plans/:plan", zValidator("param", planParam, orRefuse), async (c) => {
    const { plan } = c.req.valid("param");
    const { rules } = await readSmallJson(c.req.raw, planSchema);
    await demandKnown(c, { rules });
    await keeper.set(c.env, plan, rules);
    return c.json({ plan, rules });
  });
  return routes;
}

export const planOperations: readonly Operation[] = [
  {
    method: "get",
    path: "/admin/plans/{plan}",
    summary: "A plan's rules",
    access: "operator",
    answer: planAnswerSchema,
    errors: ["INVALID_REQUEST", "UNAUTHORIZED", "NOT_FOUND", "CONTROL_UNAVAILABLE"],
  },
  {
    method: "get",
    path: "/admin/plans",
    summary: "Every plan's rules",
    access: "operator",
    answer: z.object({ plans: z.array(planAnswerSchema) }),
    errors: ["UNAUTHORIZED", "CONTROL_UNAVAILABLE"],
  },
  {
    method: "put",
    path: "/admin/plans/{plan}",
    summary: "Set a plan's rules, for everybody within 20 s",
    access: "operator",
    body: planSchema,
    answer: planAnswerSchema,
    errors: [...bodyErrors, "INVALID_REQUEST", "UNAUTHORIZED", "CONTROL_UNAVAILABLE"],
  },
];
