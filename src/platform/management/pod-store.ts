// The account's Pods: records with a price and a clock.
import { microUsd } from "../../micro-usd.ts";
import type { Refusal } from "../queue/views.ts";
import { defaultPorts, refer } from "./fields.ts";
import type { Circumstances, Ledger } from "./ledger.ts";
import { lockedOut, type Pod, type PodEvent, type PodMove, podMoves, statusChange } from "./pod.ts";
import { whereOf } from "./pod-filter.ts";
import type { PodChange, PodFilter, PodInput } from "./pod-input.ts";
import { type Compute, cpuPrices, describeGpu, gpuPrices, gpuTypeIds, podMicroUsdPerHour, usd } from "./prices.ts";
import { absent, type RowPage, Rows } from "./rows.ts";
import type { Template } from "./template-input.ts";
import { type TemplateStore, unknownReference, wrongKind } from "./template-store.ts";
import type { Volume } from "./volume.ts";

/** How many terminated Pods are remembered. */
const rememberedPods = 1000;
const secondary = { memoryInGb: 8, vcpus: 2 } as const;

export class PodStore {
  readonly #sql: SqlStorage;
  readonly #rows: Rows<Pod>;
  readonly #terminated: Rows<Pod>;
  readonly #ledger: Ledger;
  readonly #templates: TemplateStore;

  constructor(sql: SqlStorage, ledger: Ledger, templates: TemplateStore) {
    this.#sql = sql;
    this.#rows = new Rows(sql, "pods");
    this.#terminated = new Rows(sql, "terminated_pods");
    this.#ledger = ledger;
    this.#templates = templates;
  }

  find(id: string): Pod | undefined {
    return this.#rows.find(id);
  }

  page(filter: PodFilter, after: number): RowPage {
    const { where, bindings } = whereOf(filter);
    const rows = filter.desiredStatus === "TERMINATED" ? this.#terminated : this.#rows;
    return rows.page(where, bindings, after);
  }

  /** `shared` is the public template of another account that the input names. */
  create(id: string, userId: string, input: PodInput, now: number, shared?: Template): Pod | Refusal {
    const template = input.templateId ? (this.#templates.known(input.templateId) ?? shared) : undefined;
    if (input.templateId && !template) return unknownReference("templateId", "template");
    const kind = template && wrongKind(template, false);
    if (kind) return kind;
    const volume = input.networkVolumeId
      ? new Rows<Volume>(this.#sql, "volumes").find(input.networkVolumeId)
      : undefined;
    if (input.networkVolumeId && !volume) return unknownReference("networkVolumeId", "network volume");
    const pod = newPod(id, userId, input, now, { template, volume });
    const refusal = this.#refuse(pod);
    if (refusal) return refusal;
    this.#rows.add(pod, { templateCopy: this.#templates.copyOf(template) });
    this.#ledger.start(circumstances(pod), now);
    return pod;
  }

  /** A change of these fields resets the Pod; a new name or lock does not. */
  update(id: string, change: PodChange, now: number): Pod | Refusal {
    const known = this.#rows.find(id);
    if (!known) return absent("pod");
    const next = applied(known, change);
    const refusal = this.#refuse(next);
    if (refusal) return refusal;
    if (JSON.stringify(running(next)) === JSON.stringify(running(known))) {
      this.#rows.put(next);
      return next;
    }
    return this.#move(next, "reset", now);
  }

  act(id: string, event: PodEvent, now: number): Pod | Refusal {
    const known = this.#rows.find(id);
    return known ? this.#move(known, event, now) : absent("pod");
  }

  #move(pod: Pod, event: PodEvent, now: number): Pod | Refusal {
    if (pod.locked && lockedOut.has(event)) {
      return { refused: "LOCKED", detail: `a locked Pod cannot be ${event === "stop" ? "stopped" : "reset"}` };
    }
    const move = podMoves[pod.desiredStatus][event];
    if (!move) return { refused: "WRONG_STATE", detail: `cannot ${event} a Pod that is ${pod.desiredStatus}` };
    const next = moved(pod, move, now);
    this.#clock(pod, next, now);
    if (move.to === "TERMINATED") this.#bury(next);
    else this.#rows.put(next);
    return next;
  }

  /** Time until now counts for the old image; a reset Pod may run another one from now on. */
  #clock(pod: Pod, next: Pod, now: number): void {
    const runs = next.desiredStatus === "RUNNING";
    if (!runs) this.#ledger.stop(pod.id, now);
    else if (pod.desiredStatus !== "RUNNING" || next.image !== this.#rows.find(pod.id)?.image) {
      this.#ledger.start(circumstances(next), now);
    }
  }

  /** Drops its references: a Pod that is gone keeps no template, volume or auth in use. */
  #bury({ templateId: _, networkVolumeId: __, containerRegistryAuthId: ___, ...pod }: Pod): void {
    this.#rows.remove(pod.id);
    this.#terminated.add(pod as Pod);
    this.#sql.exec(
      "DELETE FROM terminated_pods WHERE seq <= (SELECT MAX(seq) FROM terminated_pods) - ?",
      rememberedPods,
    );
  }

  #refuse({ containerRegistryAuthId: auth }: Pod): Refusal | undefined {
    if (auth === undefined || new Rows(this.#sql, "registry_auths").has("id = ?", auth)) return undefined;
    return unknownReference("containerRegistryAuthId", "container registry auth");
  }
}

function circumstances(pod: Pod): Circumstances {
  return {
    kind: "pod",
    resource: pod.id,
    gpuTypeId: pod.gpuTypeId ?? "",
    gb: 0,
    dataCenterId: pod.dataCenterId,
    microUsdPerHour: microUsd(pod.costPerHr),
    templateId: pod.templateId ?? "",
    imageName: pod.image,
  };
}

function newPod(
  id: string,
  consumerUserId: string,
  input: PodInput,
  now: number,
  { template, volume }: { template: Template | undefined; volume: Volume | undefined },
): Pod {
  const [gpuTypeId = gpuTypeIds[0], cpuFlavorId = "cpu3c"] = [input.gpuTypeIds[0], input.cpuFlavorIds[0]];
  const gpus = input.gpuCount;
  const compute: Compute =
    input.computeType === "GPU"
      ? { computeType: "GPU", gpuTypeId, gpuCount: gpus }
      : { computeType: "CPU", cpuFlavorId, vcpuCount: input.vcpuCount };
  const secureCloud = input.cloudType === "SECURE";
  const cost = usd(podMicroUsdPerHour(compute, { secure: secureCloud, interruptible: input.interruptible }));
  const auth = refer(template?.containerRegistryAuthId, input.containerRegistryAuthId);
  const made =
    compute.computeType === "GPU"
      ? {
          gpuTypeId,
          gpu: describeGpu(gpuTypeId, gpus),
          vcpuCount: gpus * Math.max(input.minVCPUPerGPU, secondary.vcpus),
          memoryInGb: gpus * Math.max(input.minRAMPerGPU, gpuPrices[gpuTypeId].memoryInGb),
        }
      : { cpuFlavorId, vcpuCount: input.vcpuCount, memoryInGb: input.vcpuCount * cpuPrices[cpuFlavorId].memoryInGb };
  return {
    id,
    name: input.name ?? template?.name ?? "my pod",
    consumerUserId,
    desiredStatus: "RUNNING",
    lastStartedAt: new Date(now).toISOString(),
    lastStatusChange: statusChange("Rented", now),
    image: input.imageName ?? template?.imageName ?? "",
    env: { ...template?.env, ...input.env },
    dockerEntrypoint: input.dockerEntrypoint ?? [...(template?.dockerEntrypoint ?? [])],
    dockerStartCmd: input.dockerStartCmd ?? [...(template?.dockerStartCmd ?? [])],
    ports: input.ports ?? [...(template?.ports ?? defaultPorts)],
    containerDiskInGb: input.containerDiskInGb ?? template?.containerDiskInGb ?? 50,
    volumeInGb: input.volumeInGb ?? template?.volumeInGb ?? 20,
    volumeMountPath: input.volumeMountPath ?? template?.volumeMountPath ?? "/workspace",
    volumeEncrypted: false,
    portMappings: null,
    publicIp: null,
    computeType: input.computeType,
    dataCenterId: volume?.dataCenterId ?? input.dataCenterIds[0] ?? "",
    ...made,
    costPerHr: cost,
    adjustedCostPerHr: cost,
    secureCloud,
    interruptible: input.interruptible,
    locked: input.locked ?? false,
    globalNetworking: input.globalNetworking ?? false,
    ...(auth !== undefined && { containerRegistryAuthId: auth }),
    ...(input.templateId && { templateId: input.templateId }),
    ...(volume && { networkVolumeId: volume.id }),
  };
}

function applied(pod: Pod, change: PodChange): Pod {
  const { containerRegistryAuthId: given, imageName, containerDiskInGb, volumeInGb, ...others } = change;
  const { containerRegistryAuthId, ...rest } = pod;
  const auth = refer(containerRegistryAuthId, given);
  const named = Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined));
  return {
    ...rest,
    ...named,
    image: imageName ?? pod.image,
    containerDiskInGb: containerDiskInGb ?? pod.containerDiskInGb,
    volumeInGb: volumeInGb ?? pod.volumeInGb,
    ...(auth !== undefined && { containerRegistryAuthId: auth }),
  } as Pod;
}

/** The fields that cannot change while the Pod runs. */
function running({ name: _, locked: __, ...pod }: Pod) {
  return Object.entries(pod).sort(([left], [right]) => (left < right ? -1 : 1));
}

function moved(pod: Pod, { to, word, starts }: PodMove, now: number): Pod {
  return {
    ...pod,
    desiredStatus: to,
    ...(word !== undefined && { lastStatusChange: statusChange(word, now) }),
    ...(starts && { lastStartedAt: new Date(now).toISOString() }),
  } as Pod;
}
