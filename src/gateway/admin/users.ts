// `/admin/users/:user`: a user's plan, rules and grants, what is used of them, and a fresh start.
import * as z from "zod";
import { repeated } from "../../durable/remote.ts";
import { Problem } from "../../errors.ts";
import { microUsd } from "../../micro-usd.ts";
import type { Call } from "../call.ts";
import { gatewayRoute } from "../gateway-route.ts";
import { isUserId, readPayer } from "../identity/owners.ts";
import { readControl } from "../operator-settings/control-reader.ts";
import { demandKnown } from "../operator-settings/known-names.ts";
import { plansOf } from "../operator-settings/plans.ts";
import { planNameSchema, rulesSchema, units } from "../operator-settings/rules.ts";
import { changed, type Grant, type SettingsChange } from "../quota/account-settings.ts";
import { microUsdAsUsd } from "../quota/amounts.ts";
import { meterOf, orUnavailable } from "../quota/meter-stub.ts";
import { endOf } from "../quota/periods.ts";
import { limitSchema, type MeterTotals, renderLimit, renderSpent, spentSchema } from "../quota/usage.ts";

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

const unitSchema = z.enum(units);
const changeSchema = z
  .strictObject({
    plan: planNameSchema.nullable().optional().describe("Goes before what tokens claim; null takes it back."),
    rules: rulesSchema.nullable().optional().describe("Go before any plan's; null takes them back."),
  })
  .meta({ id: "UserChange" });
const grantSchema = z
  .strictObject({
    unit: unitSchema,
    amount: z.number().positive().max(100_000_000_000_000).describe("On top of every rule of this unit."),
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

const path = "/admin/users/:user";
const errors = ["UNAUTHORIZED", "NOT_FOUND", "METER_UNAVAILABLE", "CONTROL_UNAVAILABLE"] as const;
const onUser = { access: "operator", params: payerParam, answer: userSchema, errors } as const;

/** They stand behind `operatorOnly`. */
export const userRoutes = [
  gatewayRoute({ ...onUser, method: "get", path, summary: "A user's quota" }, [], (call, { params }) =>
    describeUser(call, params.user),
  ),
  gatewayRoute(
    { ...onUser, method: "patch", path, summary: "Change a user's plan or rules", json: changeSchema },
    [],
    async (call, { params: { user }, json: change }) => {
      await demandKnown(call, change);
      await changeUser(call, user, change);
      return describeUser(call, user);
    },
  ),
  gatewayRoute(
    { ...onUser, method: "post", path: `${path}/grant`, summary: "Grant a user more for a time", json: grantSchema },
    [],
    async (call, { params: { user }, json: { unit, amount, expiresAt } }) => {
      const end = expiresAt === undefined ? endOf("month", call.exchange.startedAt) : Date.parse(expiresAt);
      const granted = unit === "usd" ? microUsd(amount) : amount;
      const grant: Grant = { id: crypto.randomUUID(), unit, amount: granted, expiresAt: end };
      await changeUser(call, user, { grant });
      return describeUser(call, user);
    },
  ),
  gatewayRoute(
    { ...onUser, method: "post", path: `${path}/reset`, summary: "Let a user's counts begin anew" },
    [],
    async (call, { params: { user } }) => {
      await orUnavailable(meterOf(call.env, user).reset());
      return describeUser(call, user);
    },
  ),
  gatewayRoute(
    {
      ...onUser,
      method: "post",
      path: `${path}/recount`,
      summary: "Make a user's counters of their jobs anew",
      answer: recountSchema,
    },
    [],
    async ({ env }, { params: { user } }) => {
      const { was, is, off } = await orUnavailable(meterOf(env, user).recount());
      return Response.json({ was: renderTotals(was), is: renderTotals(is), off: [...off] });
    },
  ),
];

function renderTotals(totals: MeterTotals): z.output<typeof countedSchema> {
  return { ...renderSpent(totals), jobs: totals.jobs };
}

/** The meter applies the change by itself; the settings beside it are for one of the previous release. */
async function changeUser({ env, exchange }: Call, payer: string, change: SettingsChange): Promise<void> {
  const ask = async () => {
    const meter = meterOf(env, payer);
    const settings = changed(await meter.settings(), change, exchange.startedAt);
    return settings ? meter.configure(settings, change) : "full";
  };
  if ((await orUnavailable(repeated(ask))) === "full")
    throw new Problem("INVALID_REQUEST", "This user has too many grants.");
}

async function describeUser(call: Call, payer: string): Promise<Response> {
  const { defaultPlan, local } = call.config;
  const plans = plansOf(await readControl(call), local);
  const account = await orUnavailable(meterOf(call.env, payer).view(payer, { defaultPlan, plans }));
  if (!account) throw new Problem("NOT_FOUND", "This user never submitted anything, and nothing was set for it.");
  const { plan, planFrom, unknownPlan = null, settings, revokedAt } = account;
  const described: z.output<typeof userSchema> = {
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
  return Response.json(described);
}
