// Billing: what ran and what it came to, by the kept hours.
import { type Context, Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { hourMs } from "../hours.ts";
import { bucketSizes, type Grouping, type Question, type Sum } from "./billing-report.ts";
import * as fields from "./fields.ts";
import { gpuTypeIds, usd } from "./prices.ts";
import { listed, type ManagementEnv, query } from "./resource.ts";
import { dataCenterIds } from "./vocabulary.ts";

/** As long as nobody says how long. */
const defaultSpanMs = 30 * 24 * hourMs;

const moment = z.iso
  .datetime({ offset: true, error: "expected a date and time, such as 2026-01-31T00:00:00Z" })
  .transform((text) => Date.parse(text))
  .optional();
const span = {
  bucketSize: z.enum(bucketSizes).default("day"),
  startTime: moment,
  endTime: moment,
};
const inOrder = { path: ["startTime"], error: "is after endTime" };
const isInOrder = ({ startTime, endTime }: { startTime?: number | undefined; endTime?: number | undefined }) =>
  startTime === undefined || endTime === undefined || startTime <= endTime;

const podQuery = z
  .object({
    ...span,
    gpuTypeId: z.enum(gpuTypeIds).optional(),
    grouping: z.enum(["podId", "gpuTypeId"]).default("gpuTypeId"),
    podId: fields.id.optional(),
  })
  .refine(isInOrder, inOrder);
const endpointQuery = z
  .object({
    ...span,
    dataCenterId: fields.listOf(z.enum(dataCenterIds)),
    endpointId: fields.id.optional(),
    gpuTypeId: fields.listOf(z.enum(gpuTypeIds)),
    grouping: z.enum(["endpointId", "podId", "gpuTypeId"]).default("endpointId"),
    imageName: fields.imageName.optional(),
    templateId: fields.id.optional(),
  })
  .refine(isInOrder, inOrder);
const volumeQuery = z.object(span).refine(isInOrder, inOrder);

const recordSchema = z
  .object({
    amount: z.number().describe("USD."),
    time: z.iso.datetime().describe("When the bucket begins."),
    timeBilledMs: z.int(),
    podId: z.string().optional(),
    endpointId: z.string().optional(),
    gpuTypeId: z.string().optional(),
  })
  .meta({ id: "BillingRecord" });
const volumeRecordSchema = z
  .object({
    amount: z.number().describe("USD."),
    diskSpaceBilledGb: z.int(),
    highPerformanceStorageAmount: z.number(),
    highPerformanceStorageDiskSpaceBilledGb: z.int(),
    time: z.iso.datetime().describe("When the bucket begins."),
  })
  .meta({ id: "NetworkVolumeBillingRecord" });

type Asked = { startTime?: number | undefined; endTime?: number | undefined } & Pick<Question, "bucketSize">;

async function ask(
  c: Context<ManagementEnv>,
  { startTime, endTime, bucketSize }: Asked,
  more: Pick<Question, "kind" | "grouping" | "only">,
): Promise<readonly Sum[]> {
  return c
    .get("books")()
    .sumUp({ startTime, endTime, bucketSize, defaultSpanMs, ...more });
}

const one = (value: string | undefined) => (value === undefined ? undefined : [value]);
const timeOf = ({ hour }: Sum) => new Date(hour * hourMs).toISOString();

function recordOf(sum: Sum, grouping: Grouping) {
  const of = sum.of === "" ? {} : { [grouping]: sum.of };
  return { amount: usd(sum.microUsd), time: timeOf(sum), timeBilledMs: sum.ms, ...of };
}

export const billing = new Hono<ManagementEnv>()
  .get("/pods", query(podQuery), async (c) => {
    const { podId, gpuTypeId, grouping, ...span } = c.req.valid("query");
    const only = { resource: one(podId), gpuTypeId: one(gpuTypeId) };
    const sums = await ask(c, span, { kind: "pod", grouping, only });
    return c.json(sums.map((sum) => recordOf(sum, grouping)));
  })
  .get("/endpoints", query(endpointQuery), async (c) => {
    const { endpointId, gpuTypeId, dataCenterId, imageName, templateId, grouping, ...span } = c.req.valid("query");
    const only = {
      resource: one(endpointId),
      gpuTypeId,
      dataCenterId,
      imageName: one(imageName),
      templateId: one(templateId),
    };
    const sums = await ask(c, span, { kind: "endpoint", grouping, only });
    return c.json(sums.map((sum) => recordOf(sum, grouping)));
  })
  .get("/networkvolumes", query(volumeQuery), async (c) => {
    const sums = await ask(c, c.req.valid("query"), { kind: "volume", grouping: undefined, only: {} });
    const none = { highPerformanceStorageAmount: 0, highPerformanceStorageDiskSpaceBilledGb: 0 };
    return c.json(
      sums.map((sum) => ({ amount: usd(sum.microUsd), diskSpaceBilledGb: sum.gb, ...none, time: timeOf(sum) })),
    );
  });

const read = { access: "platform", method: "get", errors: listed } as const;

export const billingOperations: readonly Operation[] = [
  {
    ...read,
    id: "PodBilling",
    path: "/billing/pods",
    summary: "What Pods came to, by the clock",
    query: podQuery,
    answer: z.array(recordSchema),
  },
  {
    ...read,
    id: "EndpointBilling",
    path: "/billing/endpoints",
    summary: "What the run time of jobs came to",
    query: endpointQuery,
    answer: z.array(recordSchema),
  },
  {
    ...read,
    id: "NetworkVolumeBilling",
    path: "/billing/networkvolumes",
    summary: "What volumes came to",
    query: volumeQuery,
    answer: z.array(volumeRecordSchema),
  },
];
