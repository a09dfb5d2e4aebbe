// A serverless endpoint: what one is made of, asked by and answered as.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { workerUrl } from "../../settings.ts";
import * as fields from "./fields.ts";
import { podSchema } from "./pod.ts";
import { cpuFlavorIds, gpuTypeIds } from "./prices.ts";
import { templateSchema } from "./template-input.ts";
import { computeTypes, dataCenterIds, endpointTypes, scalerTypes } from "./vocabulary.ts";

const maxWorkers = 1000;
/** All workers are pinged at once. */
const maxUrls = 100;
const { min: minTimeoutMs, max: maxTimeoutMs } = limits.executionTimeoutMs;

const type = z
  .enum(endpointTypes)
  .describe("QB: requests are queued. LB: they go to the workers at once. It stays what it is.");

const changeable = {
  allowedCudaVersions: fields.cudas,
  cpuFlavorIds: fields.choice(cpuFlavorIds),
  dataCenterIds: fields.dataCenters,
  executionTimeoutMs: z.int().min(minTimeoutMs).max(maxTimeoutMs).describe("For jobs that bring none of their own."),
  flashboot: z.boolean(),
  gpuCount: fields.count,
  gpuTypeIds: fields.choice(gpuTypeIds).describe("In priority order: the first that is available is taken."),
  idleTimeout: z.int().min(1).max(3600),
  minCudaVersion: fields.cuda,
  name: fields.name,
  networkVolumeId: fields.reference,
  networkVolumeIds: z.array(fields.id).max(32),
  scalerType: z.enum(scalerTypes),
  scalerValue: z.int().min(1).max(100_000),
  templateId: fields.id,
  type,
  vcpuCount: fields.count,
  workerUrls: z.array(workerUrl).max(maxUrls).describe("Where the workers of an LB endpoint listen, by http or https."),
  workersMax: z.int().min(0).max(maxWorkers),
  workersMin: z.int().min(0).max(maxWorkers),
};

export const endpointUpdateSchema = z.object(changeable).partial().meta({ id: "EndpointUpdateInput" });
export const endpointCreateSchema = endpointUpdateSchema
  .extend({
    templateId: changeable.templateId,
    computeType: z.enum(computeTypes).default("GPU"),
    dataCenterIds: changeable.dataCenterIds.default([...dataCenterIds]),
    executionTimeoutMs: changeable.executionTimeoutMs.default(limits.executionTimeoutMs.default),
    gpuCount: changeable.gpuCount.default(1),
    idleTimeout: changeable.idleTimeout.default(5),
    scalerValue: changeable.scalerValue.default(4),
    type: type.default("QB"),
    vcpuCount: changeable.vcpuCount.default(2),
    workersMax: changeable.workersMax.default(3),
    workersMin: changeable.workersMin.default(0),
  })
  .meta({ id: "EndpointCreateInput" });
export type EndpointInput = z.output<typeof endpointCreateSchema>;
export type EndpointChange = z.output<typeof endpointUpdateSchema>;

const { vcpuCount, workerUrls, minCudaVersion, allowedCudaVersions, networkVolumeIds, ...answered } = changeable;
export const endpointSchema = z
  .object({
    ...answered,
    ...z
      .object({ vcpuCount, workerUrls, minCudaVersion, allowedCudaVersions, gpuTypeIds: answered.gpuTypeIds })
      .partial().shape,
    ...z.object({ cpuFlavorIds: answered.cpuFlavorIds, flashboot: answered.flashboot }).partial().shape,
    id: z.string(),
    computeType: z.enum(computeTypes),
    createdAt: z.iso.datetime(),
    env: z.record(z.string(), z.string()),
    instanceIds: z.array(z.string()),
    networkVolumeId: z.string().optional(),
    networkVolumeIds,
    template: templateSchema.optional(),
    userId: z.string(),
    version: z.int().describe("How often it was changed."),
    workers: z.array(podSchema).optional(),
  })
  .meta({ id: "Endpoint" });
export type Endpoint = z.output<typeof endpointSchema>;

export const endpointIncludeSchema = z.object({
  includeTemplate: fields.flag.describe("With the template it was made of."),
  includeWorkers: fields.flag.describe("With the workers that are attached."),
});
export type EndpointIncludes = z.output<typeof endpointIncludeSchema>;
