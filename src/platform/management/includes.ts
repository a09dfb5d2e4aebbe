// What an answer carries beside the record where it is asked for: templates, workers, machines, volumes.
import type { Endpoint } from "./endpoint.ts";
import type { Pod } from "./pod.ts";
import type { PodIncludes } from "./pod-input.ts";
import { type Compute, cpuPrices, describeGpu, gpuPrices, usd, workerMicroUsdPerHour } from "./prices.ts";
import type { Template } from "./template-input.ts";
import type { Volume } from "./volume.ts";

const note = "A record with a price and a clock: no machine is rented.";

function machineOf(pod: Pod) {
  const { dataCenterId, costPerHr, secureCloud, gpu, cpuFlavorId, vcpuCount } = pod;
  const gpus = gpu && { gpuTypeId: gpu.id, gpuDisplayName: gpu.displayName, currentPricePerGpu: costPerHr / gpu.count };
  const cpus = cpuFlavorId !== undefined && { cpuTypeId: cpuFlavorId, cpuCount: vcpuCount };
  return { dataCenterId, costPerHr, secureCloud, note, ...gpus, ...cpus };
}

export function includeInPod(pod: Pod, asked: PodIncludes, volume: Volume | undefined, template?: Template): Pod {
  return {
    ...pod,
    ...(asked.includeMachine && { machine: machineOf(pod) }),
    ...(asked.includeNetworkVolume && volume && { networkVolume: volume }),
    ...(asked.includeSavingsPlans && { savingsPlans: [] }),
    ...(asked.includeTemplate && template && { template: { ...template } }),
  };
}

/** A worker that is attached to an endpoint, as clients know one: a Pod that the endpoint started. */
export function workerAsPod(worker: string, endpoint: Endpoint, template: Template | undefined, compute: Compute): Pod {
  const { id: endpointId, templateId, userId, version, env, dataCenterIds, computeType } = endpoint;
  const costPerHr = usd(workerMicroUsdPerHour(compute));
  const made =
    compute.computeType === "GPU"
      ? {
          gpuTypeId: compute.gpuTypeId,
          gpu: describeGpu(compute.gpuTypeId, compute.gpuCount),
          vcpuCount: 0,
          memoryInGb: gpuPrices[compute.gpuTypeId].memoryInGb * compute.gpuCount,
        }
      : {
          cpuFlavorId: compute.cpuFlavorId,
          vcpuCount: compute.vcpuCount,
          memoryInGb: cpuPrices[compute.cpuFlavorId].memoryInGb * compute.vcpuCount,
        };
  return {
    id: worker,
    name: worker,
    desiredStatus: "RUNNING",
    endpointId,
    templateId,
    consumerUserId: userId,
    slsVersion: version,
    env,
    image: template?.imageName ?? "",
    ports: [...(template?.ports ?? [])],
    dockerEntrypoint: [...(template?.dockerEntrypoint ?? [])],
    dockerStartCmd: [...(template?.dockerStartCmd ?? [])],
    portMappings: null,
    publicIp: null,
    volumeEncrypted: false,
    interruptible: false,
    locked: false,
    containerDiskInGb: template?.containerDiskInGb ?? 0,
    volumeInGb: template?.volumeInGb ?? 0,
    volumeMountPath: template?.volumeMountPath ?? "/workspace",
    computeType,
    dataCenterId: dataCenterIds[0] ?? "",
    costPerHr,
    adjustedCostPerHr: costPerHr,
    ...made,
    secureCloud: true,
    globalNetworking: false,
    ...(endpoint.networkVolumeId !== undefined && { networkVolumeId: endpoint.networkVolumeId }),
  };
}
