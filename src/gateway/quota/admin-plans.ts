// `/admin/plans/:plan`: the operator's plans, kept in CONTROL; one of a built-in plan's name goes before it.
import { zValidator } from "@hono/zod-validator";
import { Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { Problem } from "../../errors.ts";
import { orRefuse } from "../../wire/refusals.ts";
import { readSmallJson } from "../../wire/small-body.ts";
import type { ControlView } from "../control/control-view.ts";
import type { GatewayEnv } from "../env.ts";
import { demandKnown } from "../known-names.ts";
import { planNameSchema, type Rule, rulesSchema } from "../rules.ts";
import { findPlan, localPlans, plansText, plansWithoutOperator } from "./plans.ts";

const planParam = z.object({ plan: planNameSchema });
const planSchema = z.strictObject({ rules: rulesSchema }).meta({ id: "Plan" });
const planAnswerSchema = planSchema.extend({ plan: z.string() }).meta({ id: "PlanOf" });

/** Where the operator's plans are kept. */
export interface PlanKeeper {
  find(env: Env, name: string): Promise<readonly Rule[] | undefined>;
  set(env: Env, name: string, rules: Rule[]): Promise<void>;
}

const known = new WeakMap<ControlView, { version: number; plans: string }>();

/** The plans that are not built in as a meter is told them, made once for each version that the isolate reads. */
export function plansOf(control: ControlView, local: boolean): string {
  const made = known.get(control);
  if (made?.version === control.version) return made.plans;
  const operators = Object.fromEntries([...control.plans].map(([name, { rules }]) => [name, rules]));
  const plans = plansText({ ...localPlans(local), ...operators });
  known.set(control, { version: control.version, plans });
  return plans;
}

/** Stand behind `operatorOnly`. */
export function planRoutes(keeper: PlanKeeper): Hono<GatewayEnv> {
  const routes = new Hono<GatewayEnv>();
  routes.get("/admin/plans/:plan", zValidator("param", planParam, orRefuse), async (c) => {
    const { plan } = c.req.valid("param");
    const rules = (await keeper.find(c.env, plan)) ?? findPlan(plansWithoutOperator(c.get("config").local), plan);
    if (!rules) throw new Problem("NOT_FOUND", "There is no such plan.");
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
    errors: ["INVALID_REQUEST", "UNAUTHORIZED", "NOT_FOUND"],
  },
  {
    method: "put",
    path: "/admin/plans/{plan}",
    summary: "Set a plan's rules, for everybody within 20 s",
    access: "operator",
    body: planSchema,
    answer: planAnswerSchema,
    errors: ["INVALID_JSON", "INVALID_REQUEST", "UNAUTHORIZED", "PAYLOAD_TOO_LARGE", "CONTROL_UNAVAILABLE"],
  },
];
