// A Pod: its states as a table, and how it is answered.
import * as z from "zod";
import { computeTypes, type DesiredStatus, desiredStatuses } from "./vocabulary.ts";
import { volumeSchema } from "./volume.ts";

export type PodEvent = "start" | "stop" | "restart" | "reset" | "terminate";

export interface PodMove {
  readonly to: DesiredStatus;
  /** What `lastStatusChange` says of it; a move without a word changes nothing. */
  readonly word?: string;
  /** The container begins anew. */
  readonly starts?: true;
}

/** A missing entry is a refused move. */
export const podMoves: Record<DesiredStatus, Partial<Record<PodEvent, PodMove>>> = {
  RUNNING: {
    start: { to: "RUNNING" },
    stop: { to: "EXITED", word: "Exited" },
    restart: { to: "RUNNING", word: "Restarted", starts: true },
    reset: { to: "RUNNING", word: "Reset", starts: true },
    terminate: { to: "TERMINATED", word: "Terminated" },
  },
  EXITED: {
    start: { to: "RUNNING", word: "Resumed", starts: true },
    stop: { to: "EXITED" },
    reset: { to: "EXITED", word: "Reset" },
    terminate: { to: "TERMINATED", word: "Terminated" },
  },
  TERMINATED: {},
};

/** A locked Pod keeps what it has. */
export const lockedOut: ReadonlySet<PodEvent> = new Set(["stop", "reset"]);

export function statusChange(word: string, now: number): string {
  return `${word} by user: ${new Date(now).toISOString()}`;
}

const gpuSchema = z.object({
  id: z.string(),
  count: z.int(),
  displayName: z.string(),
  securePrice: z.number(),
  communityPrice: z.number(),
  secureSpotPrice: z.number(),
  communitySpotPrice: z.number(),
});

/** What a machine would be: no machine is rented, so it has no address and no id. */
const machineSchema = z.object({
  dataCenterId: z.string(),
  costPerHr: z.number(),
  gpuTypeId: z.string().optional(),
  gpuDisplayName: z.string().optional(),
  currentPricePerGpu: z.number().optional(),
  cpuCount: z.int().optional(),
  cpuTypeId: z.string().optional(),
  secureCloud: z.boolean(),
  note: z.string(),
});

export const podSchema = z
  .looseObject({
    id: z.string(),
    name: z.string(),
    desiredStatus: z.enum(desiredStatuses),
    lastStatusChange: z.string().optional(),
    lastStartedAt: z.string().optional(),
    image: z.string(),
    env: z.record(z.string(), z.string()),
    dockerEntrypoint: z.array(z.string()),
    dockerStartCmd: z.array(z.string()),
    ports: z.array(z.string()),
    portMappings: z.record(z.string(), z.int()).nullable(),
    publicIp: z.string().nullable(),
    containerDiskInGb: z.int(),
    volumeInGb: z.int(),
    volumeMountPath: z.string(),
    volumeEncrypted: z.boolean(),
    containerRegistryAuthId: z.string().optional(),
    templateId: z.string().optional(),
    networkVolumeId: z.string().optional(),
    endpointId: z.string().optional().describe("Of a serverless worker."),
    slsVersion: z.int().optional(),
    consumerUserId: z.string(),
    computeType: z.enum(computeTypes),
    dataCenterId: z.string(),
    gpuTypeId: z.string().optional(),
    gpu: gpuSchema.optional(),
    cpuFlavorId: z.string().optional(),
    vcpuCount: z.number(),
    memoryInGb: z.number(),
    costPerHr: z.number().describe("USD."),
    adjustedCostPerHr: z.number().describe("USD."),
    interruptible: z.boolean(),
    locked: z.boolean(),
    machine: machineSchema.optional(),
    networkVolume: volumeSchema.optional(),
    savingsPlans: z.array(z.looseObject({})).optional(),
    template: z.looseObject({}).optional(),
  })
  .meta({ id: "Pod" });
export type Pod = z.output<typeof podSchema> & { readonly secureCloud: boolean; readonly globalNetworking: boolean };
