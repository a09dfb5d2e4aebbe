// Billing: what ran and what it came to, by the kept hours.
import * as z from "zod";
import { orThrow } from "../answers.ts";
import { hourMs } from "../hours.ts";
import type { PlatformRoute } from "../platform-route.ts";
import type { BillingQuestion } from "./account-calls.ts";
import { bucketSizes, type Grouping, type Sum } from "./billing-report.ts";
import * as fields from "./fields.ts";
import { type ManagementCall, managementRoute } from "./management-route.ts";
import { gpuTypeIds, usd } from "./prices.ts";
import { dataCenterIds } from "./vocabulary.ts";

/** How far back a question goes that names no start. */
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
    dataCenterId: fields.listOf(z.enum(dataCenterIds), dataCenterIds),
    endpointId: fields.id.optional(),
    gpuTypeId: fields.listOf(z.enum(gpuTypeIds), gpuTypeIds),
    grouping: z.enum(["endpointId", "podId", "gpuTypeId"]).default("endpointId"),
    imageName: fields.imageName.optional(),
    templateId: fields.id.optional(),
  })
  .refine(isInOrder, inOrder);
const volumeQuery = z.object(span).refine(isInOrder, inOrder);

const billed = { amount: z.number().describe("USD."), time: z.iso.datetime().describe("When the bucket begins.") };
const recordSchema = z
  .object({
    ...billed,
    timeBilledMs: z.int(),
    podId: z.string().optional(),
    endpointId: z.string().optional(),
    gpuTypeId: z.string().optional(),
  })
  .meta({ id: "BillingRecord" });
const volumeRecordSchema = z
  .object({
    ...billed,
    diskSpaceBilledGb: z.int(),
    highPerformanceStorageAmount: z.number(),
    highPerformanceStorageDiskSpaceBilledGb: z.int(),
  })
  .meta({ id: "NetworkVolumeBillingRecord" });

type Span = Partial<Pick<BillingQuestion, "startTime" | "endTime">> & Pick<BillingQuestion, "bucketSize">;

/** Only what a billing question knows goes into the call. */
function spanOf({ startTime, endTime, bucketSize }: Span) {
  return { startTime, endTime, bucketSize, defaultSpanMs };
}

const one = (value: string | undefined) => (value === undefined ? undefined : [value]);
const timeOf = ({ hour }: Sum) => new Date(hour * hourMs).toISOString();

/** By the clock of what ran. */
async function answerRun(
  { records }: ManagementCall,
  question: Pick<BillingQuestion, "kind" | "only"> & { readonly grouping: Grouping },
  span: Span,
): Promise<Response> {
  const sums = orThrow(await records().sumUp({ ...spanOf(span), ...question }));
  const record = (sum: Sum) => ({
    amount: usd(sum.microUsd),
    time: timeOf(sum),
    timeBilledMs: sum.ms,
    ...(sum.of !== "" && { [question.grouping]: sum.of }),
  });
  return Response.json(sums.map(record));
}

const run = { method: "get", answer: z.array(recordSchema) } as const;

export const billingRoutes: readonly PlatformRoute[] = [
  managementRoute(
    { ...run, id: "PodBilling", path: "/billing/pods", summary: "What Pods came to, by the clock", query: podQuery },
    (call, { query: { podId, gpuTypeId, grouping, ...span } }) =>
      answerRun(call, { kind: "pod", grouping, only: { resource: one(podId), gpuTypeId: one(gpuTypeId) } }, span),
  ),
  managementRoute(
    {
      ...run,
      id: "EndpointBilling",
      path: "/billing/endpoints",
      summary: "What the run time of jobs came to",
      query: endpointQuery,
    },
    (call, { query: { endpointId, imageName, templateId, gpuTypeId, dataCenterId, grouping, ...span } }) => {
      const only = {
        resource: one(endpointId),
        imageName: one(imageName),
        templateId: one(templateId),
        gpuTypeId,
        dataCenterId,
      };
      return answerRun(call, { kind: "endpoint", grouping, only }, span);
    },
  ),
  managementRoute(
    {
      id: "NetworkVolumeBilling",
      method: "get",
      path: "/billing/networkvolumes",
      summary: "What volumes came to",
      query: volumeQuery,
      answer: z.array(volumeRecordSchema),
    },
    async ({ records }, { query: span }) => {
      const sums = orThrow(await records().sumUp({ ...spanOf(span), kind: "volume", grouping: undefined, only: {} }));
      return Response.json(
        sums.map((sum) => ({
          amount: usd(sum.microUsd),
          diskSpaceBilledGb: sum.gb,
          highPerformanceStorageAmount: 0,
          highPerformanceStorageDiskSpaceBilledGb: 0,
          time: timeOf(sum),
        })),
      );
    },
  ),
];
