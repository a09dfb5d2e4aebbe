// `GET /usage`: what a caller may still do, what is reserved, when it resets, and the last jobs.
import { Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { jobStates } from "../../contract/states.ts";
import { behind } from "../behind.ts";
import { claimsOf } from "../claims.ts";
import type { GatewayEnv } from "../env.ts";
import { floodShield } from "../flood-shield.ts";
import { authenticate, permitted } from "../guards.ts";
import { meterOf, orUnavailable } from "../meter-stub.ts";
import { microUsdAsUsd } from "./amounts.ts";
import type { MeteredJob } from "./metering.ts";
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

const usageSchema = z
  .object({ plan: z.string(), limits: z.array(limitSchema), jobs: z.array(jobSchema).describe("Newest first.") })
  .meta({ id: "Usage" });

export const usageRoute = new Hono<GatewayEnv>().get(
  "/usage",
  behind<GatewayEnv>(authenticate, permitted("usage"), floodShield),
  async (c) => {
    const { payer, owner } = c.get("principal");
    const claims = claimsOf(c.var);
    const meter = meterOf(c.env, payer);
    const reads = Promise.all([meter.usage(claims), meter.jobs(owner, undefined, 0, shownJobs)]);
    const [usage, { jobs }] = await orUnavailable(reads);
    return c.json({ plan: usage.plan, limits: usage.limits.map(renderLimit), jobs: jobs.map(renderJob) });
  },
);

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

export const usageOperations: readonly Operation[] = [
  {
    method: "get",
    path: "/usage",
    summary: "What the caller has used and may still use",
    access: "user",
    answer: usageSchema,
    errors: [
      "UNAUTHORIZED",
      "TOKEN_EXPIRED",
      "TOKEN_REVOKED",
      "OPERATION_FORBIDDEN",
      "RATE_LIMITED",
      "METER_UNAVAILABLE",
    ],
  },
];
