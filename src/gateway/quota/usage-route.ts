// `GET /usage`: what a caller may still do, what is reserved, when it resets, and the last jobs.
import * as z from "zod";
import { jobStates } from "../../contract/states.ts";
import { gatewayRoute } from "../gateway-route.ts";
import { authenticate } from "../identity/authenticate.ts";
import { floodShield } from "../identity/flood-shield.ts";
import { callerErrors, permitted } from "../identity/scope.ts";
import { microUsdAsUsd } from "./amounts.ts";
import { claimsOf } from "./claims.ts";
import { meterOf, orUnavailable } from "./meter-stub.ts";
import type { MeteredJob } from "./metering.ts";
import { dayMs } from "./periods.ts";
import { type Spent, spendDays } from "./spend.ts";
import { limitSchema, renderLimit } from "./usage.ts";

const shownJobs = 100;

const jobSchema = z
  .object({
    model: z.string(),
    status: z.enum(jobStates),
    reservedUsd: z.number(),
    costUsd: z.number().nullable().describe("Null while the job is open."),
    admittedAt: z.iso.datetime(),
    endedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: "UsageJob" });

const spentSchema = z
  .object({
    day: z.iso.date().optional().describe("Of admission, UTC."),
    model: z.string().optional(),
    jobs: z.int().describe("Jobs that ended."),
    usd: z.number(),
    assumedUsd: z.number().describe("How much of it no answer told."),
  })
  .meta({ id: "SpentBy" });

const usageSchema = z
  .object({
    plan: z.string(),
    limits: z.array(limitSchema),
    jobs: z.array(jobSchema).describe("Newest first."),
    spent: z
      .array(spentSchema)
      .optional()
      .describe(`Where \`by\` is given: what ended jobs of the last ${spendDays} days cost, newest day first.`),
  })
  .meta({ id: "Usage" });

const usageQuery = z.object({
  by: z
    .enum(["day", "model", "day,model", "model,day"])
    .transform((names) => names.split(",") as ("day" | "model")[])
    .optional(),
});

export const usageRoutes = [
  gatewayRoute(
    {
      method: "get",
      path: "/usage",
      summary: "What the caller has used and may still use",
      access: "user",
      query: usageQuery,
      answer: usageSchema,
      errors: [...callerErrors, "INVALID_REQUEST", "RATE_LIMITED", "METER_UNAVAILABLE"],
    },
    [authenticate, permitted("usage"), floodShield],
    async (call, { query: { by } }) => {
      const { payer, owner } = call.principal;
      const meter = meterOf(call.env, payer);
      const spending = by && meter.spent(owner, by);
      const reads = Promise.all([meter.usage(claimsOf(call)), meter.jobs(owner, undefined, 0, shownJobs), spending]);
      const [{ plan, limits }, { jobs }, spent] = await orUnavailable(reads);
      return Response.json({
        plan,
        limits: limits.map(renderLimit),
        jobs: jobs.map(renderJob),
        ...(spent && { spent: spent.map(renderSpent) }),
      });
    },
  ),
];

function renderJob(job: MeteredJob): z.output<typeof jobSchema> {
  const { model, status, reservedMicroUsd, costMicroUsd, admittedAt, endedAt } = job;
  return {
    model,
    status,
    reservedUsd: microUsdAsUsd(reservedMicroUsd),
    costUsd: costMicroUsd === null ? null : microUsdAsUsd(costMicroUsd),
    admittedAt: new Date(admittedAt).toISOString(),
    endedAt: endedAt === null ? null : new Date(endedAt).toISOString(),
  };
}

function renderSpent({ day, model, jobs, knownMicroUsd, assumedMicroUsd }: Spent): z.output<typeof spentSchema> {
  return {
    ...(day !== undefined && { day: new Date(day * dayMs).toISOString().slice(0, 10) }),
    ...(model !== undefined && { model }),
    jobs,
    usd: microUsdAsUsd(knownMicroUsd + assumedMicroUsd),
    assumedUsd: microUsdAsUsd(assumedMicroUsd),
  };
}
