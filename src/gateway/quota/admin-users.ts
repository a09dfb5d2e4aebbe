// `/admin/users/:user`: a user's plan, rules and grants, what is used of them, and a fresh start.

import { zValidator } from "@hono/zod-validator";
import { Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { Problem } from "../../errors.ts";
import { bodyErrors } from "../../wire/body-problem.ts";
import { orRefuse } from "../../wire/refusals.ts";
import { readSmallJson } from "../../wire/small-body.ts";
import type { GatewayContext, GatewayEnv } from "../env.ts";
import { readControl } from "../guards.ts";
import { demandKnown } from "../known-names.ts";
import { meterOf, orUnavailable } from "../meter-stub.ts";
import { isUserId, readPayer } from "../owners.ts";
import { microUsd, planNameSchema, rulesSchema } from "../rules.ts";
import type { AccountSettings, Grant } from "./account-settings.ts";
import { plansOf } from "./admin-plans.ts";
import { microUsdAsUsd } from "./amounts.ts";
import { endOf } from "./periods.ts";
import { limitSchema, type MeterTotals, renderLimit, renderSpent, spentSchema } from "./usage.ts";

const payerParam = z.object({
  user: z
    .string()
    .refine(isUserId, "expected a user's id")
    .transform((user, context) => {
      const payer = readPayer(user);
      if (payer === undefined) context.addIssue({ code: "custom", message: visitorsPayAtTheirs });
      return payer ?? z.NEVER;
    }),
});
const visitorsPayAtTheirs =
  "an anonymous visitor has the quota of its address: name that, as addr:203.0.113.7/32, or its network, a /64 or a /48 of IPv6";

const unitSchema = z.enum(["requests", "jobs", "usd"]);
const changeSchema = z
  .strictObject({
    plan: planNameSchema.nullable().optional().describe("Goes before what tokens claim; null takes it back."),
    rules: rulesSchema.nullable().optional().describe("Go before any plan's; null takes them back."),
  })
  .meta({ id: "UserChange" });
const grantSchema = z
  .strictObject({
    unit: unitSchema,
    amount: z.number().positive().max(1_000_000_000).describe("On top of every rule of this unit."),
    expiresAt: z.iso.datetime().optional().describe("Without it, the end of the month in UTC."),
  })
  .refine(({ unit, amount }) => unit === "usd" || Number.isInteger(amount), {
    path: ["amount"],
    error: "expected a whole number",
  })
  .meta({ id: "GrantRequest" });
const userSchema = z
  .object({
    user: z.string(),
    plan: z.string().describe("The plan that holds for the last token that submitted something."),
    planFrom: z
      .enum(["operator", "token", "session", "default"])
      .describe("Who says so: the operator's choice for the user, else the token, SESSION_PLAN or DEFAULT_PLAN."),
    unknownPlan: z.string().nullable().describe("What they said instead, where there is no such plan."),
    rules: rulesSchema.nullable().describe("The operator's for the user, which go before any plan's."),
    grants: z.array(z.object({ unit: unitSchema, amount: z.number(), expiresAt: z.iso.datetime() })),
    revokedAt: z.iso.datetime().nullable(),
    limits: z.array(limitSchema).describe("Under the operator's rules, else under that plan."),
    spent: spentSchema,
  })
  .meta({ id: "User" });
const countedSchema = spentSchema.extend({ jobs: z.number().describe("Concurrent ones.") }).meta({ id: "Counted" });
const recountSchema = z
  .object({
    was: countedSchema,
    is: countedSchema,
    off: z.array(z.string()).describe("The counters that were something else than their jobs say."),
  })
  .meta({ id: "UserRecount" });

/** Stands behind `operatorOnly`. */
export const userRoutes = new Hono<GatewayEnv>()
  .get("/admin/users/:user", zValidator("param", payerParam, orRefuse), async (c) =>
    c.json(await describeUser(c, c.req.valid("param").user)),
  )
  .patch("/admin/users/:user", zValidator("param", payerParam, orRefuse), async (c) => {
    const { user } = c.req.valid("param");
    const change = await readSmallJson(c.req.raw, changeSchema);
    await demandKnown(c, change);
    await changeUser(c, user, (settings) => applied(settings, change));
    return c.json(await describeUser(c, user));
  })
  .post("/admin/users/:user/grant", zValidator("param", payerParam, orRefuse), async (c) => {
    const { user } = c.req.valid("param");
    const { unit, amount, expiresAt } = await readSmallJson(c.req.raw, grantSchema);
    const end = expiresAt === undefined ? endOf("month", c.get("exchange").startedAt) : Date.parse(expiresAt);
    const grant: Grant = { unit, amount: unit === "usd" ? microUsd(amount) : amount, expiresAt: end };
    await changeUser(c, user, (settings) => ({ ...settings, grants: [...settings.grants, grant].slice(-maxGrants) }));
    return c.json(await describeUser(c, user));
  })
  .post("/admin/users/:user/reset", zValidator("param", payerParam, orRefuse), async (c) => {
    const { user } = c.req.valid("param");
    await orUnavailable(meterOf(c.env, user).reset());
    return c.json(await describeUser(c, user));
  })
  .post("/admin/users/:user/recount", zValidator("param", payerParam, orRefuse), async (c) => {
    const { user } = c.req.valid("param");
    const { was, is, off } = await orUnavailable(meterOf(c.env, user).recount());
    return c.json({ was: renderTotals(was), is: renderTotals(is), off: [...off] });
  });

function renderTotals(totals: MeterTotals): z.output<typeof countedSchema> {
  return { ...renderSpent(totals), jobs: totals.jobs };
}

const maxGrants = 50;

async function changeUser(c: GatewayContext, payer: string, change: (settings: AccountSettings) => AccountSettings) {
  const meter = meterOf(c.env, payer);
  await orUnavailable(meter.settings().then((settings) => meter.configure(change(settings))));
}

function applied(settings: AccountSettings, { plan, rules }: z.output<typeof changeSchema>): AccountSettings {
  const next = {
    plan: plan === undefined ? settings.plan : plan,
    rules: rules === undefined ? settings.rules : rules,
  };
  return {
    grants: settings.grants,
    ...(next.plan != null && { plan: next.plan }),
    ...(next.rules && { rules: next.rules }),
  };
}

async function describeUser(c: GatewayContext, payer: string): Promise<z.output<typeof userSchema>> {
  const { defaultPlan, local } = c.get("config");
  const plans = plansOf(await readControl(c), local);
  const account = await orUnavailable(meterOf(c.env, payer).view(payer, { defaultPlan, plans }));
  if (!account) throw new Problem("NOT_FOUND", "This user never submitted anything, and nothing was set for it.");
  const { plan, planFrom, unknownPlan = null, settings, revokedAt } = account;
  return {
    user: payer,
    plan,
    planFrom,
    unknownPlan,
    rules: settings.rules ? [...settings.rules] : null,
    grants: settings.grants.map(({ unit, amount, expiresAt }) => ({
      unit,
      amount: unit === "usd" ? microUsdAsUsd(amount) : amount,
      expiresAt: new Date(expiresAt).toISOString(),
    })),
    revokedAt: revokedAt === undefined ? null : new Date(revokedAt).toISOString(),
    limits: account.limits.map(renderLimit),
    spent: renderSpent(account.totals),
  };
}

const read = ["INVALID_REQUEST", "UNAUTHORIZED", "NOT_FOUND", "METER_UNAVAILABLE", "CONTROL_UNAVAILABLE"] as const;
const written = [...bodyErrors, ...read] as const;
const path = "/admin/users/{user}";

export const userOperations: readonly Operation[] = [
  { method: "get", path, summary: "A user's quota", access: "operator", answer: userSchema, errors: read },
  {
    method: "patch",
    path,
    summary: "Change a user's plan or rules",
    access: "operator",
    body: changeSchema,
    answer: userSchema,
    errors: written,
  },
  {
    method: "post",
    path: `${path}/grant`,
    summary: "Grant a user more for a time",
    access: "operator",
    body: grantSchema,
    answer: userSchema,
    errors: written,
  },
  {
    method: "post",
    path: `${path}/reset`,
    summary: "Let a user's counts begin anew",
    access: "operator",
    answer: userSchema,
    errors: read,
  },
  {
    method: "post",
    path: `${path}/recount`,
    summary: "Make a user's counters of their jobs anew",
    access: "operator",
    answer: recountSchema,
    errors: read,
  },
];
