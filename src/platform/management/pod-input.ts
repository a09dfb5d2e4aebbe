// What Pods are made of and asked by: bodies and queries.
import * as z from "zod";
import * as fields from "./fields.ts";
import { cpuFlavorIds, gpuTypeIds } from "./prices.ts";
import { cloudTypes, computeTypes, dataCenterIds, desiredStatuses, priorities } from "./vocabulary.ts";

const changeable = {
  containerDiskInGb: fields.diskInGb.nullable(),
  containerRegistryAuthId: fields.reference,
  dockerEntrypoint: fields.command,
  dockerStartCmd: fields.command,
  env: fields.environment,
  globalNetworking: z.boolean(),
  imageName: fields.imageName,
  locked: z.boolean(),
  name: fields.name,
  ports: fields.ports,
  volumeInGb: fields.diskInGb.nullable(),
  volumeMountPath: fields.mountPath,
};

export const podUpdateSchema = z.object(changeable).partial().meta({ id: "PodUpdateInput" });
export type PodChange = z.output<typeof podUpdateSchema>;

const priority = z.enum(priorities).default("availability");
const amount = z.number().min(0).optional();

/** What a template may bring has no default here: the body's word comes first, then the template's, then the default. */
export const podCreateSchema = podUpdateSchema
  .extend({
    allowedCudaVersions: fields.cudas.optional(),
    cloudType: z.enum(cloudTypes).default("SECURE"),
    computeType: z.enum(computeTypes).default("GPU"),
    countryCodes: z.array(z.string()).optional(),
    cpuFlavorIds: fields.choice(cpuFlavorIds).default(["cpu3c"]),
    cpuFlavorPriority: priority,
    dataCenterIds: fields.dataCenters.default([...dataCenterIds]),
    dataCenterPriority: priority,
    gpuCount: fields.count.default(1),
    gpuTypeIds: fields.choice(gpuTypeIds).default([gpuTypeIds[0]]),
    gpuTypePriority: priority,
    interruptible: z.boolean().default(false),
    minDiskBandwidthMBps: amount,
    minDownloadMbps: amount,
    minRAMPerGPU: z.int().min(0).default(8),
    minUploadMbps: amount,
    minVCPUPerGPU: z.int().min(0).default(2),
    networkVolumeId: fields.reference.optional(),
    supportPublicIp: z.boolean().optional(),
    templateId: fields.reference.optional(),
    vcpuCount: fields.count.default(2),
  })
  .refine(({ imageName, templateId }) => imageName || templateId, {
    path: ["imageName"],
    error: "is required where there is no templateId",
  })
  .meta({ id: "PodCreateInput" });
export type PodInput = z.output<typeof podCreateSchema>;

export const podIncludeSchema = z.object({
  includeMachine: fields.flag,
  includeNetworkVolume: fields.flag,
  includeSavingsPlans: fields.flag,
  includeTemplate: fields.flag,
  includeWorkers: fields.flag.describe("Also the workers that are attached to endpoints."),
});
export type PodIncludes = z.output<typeof podIncludeSchema>;

const text = z.string().max(1024).optional();

export const podFilterSchema = podIncludeSchema.extend({
  computeType: z.enum(computeTypes).optional(),
  cpuFlavorId: fields.listOf(z.string(), cpuFlavorIds),
  dataCenterId: fields.listOf(z.string(), dataCenterIds),
  desiredStatus: z.enum(desiredStatuses).optional(),
  endpointId: z.string().max(191).optional(),
  gpuTypeId: fields.listOf(z.string(), gpuTypeIds),
  id: text,
  imageName: text,
  name: z.string().max(191).optional(),
  networkVolumeId: text,
  templateId: text,
});
export type PodFilter = z.output<typeof podFilterSchema>;
