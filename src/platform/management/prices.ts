// The one price table: what a GPU, a vCPU and a gigabyte cost in USD, and the rates in micro-USD that come of them.
import { microUsd } from "../../micro-usd.ts";

interface GpuPrice {
  readonly memoryInGb: number;
  /** USD an hour: a Pod's GPU, the same on a shared machine, and a serverless worker's. */
  readonly usd: readonly [secure: number, community: number, serverless: number];
}

const gpu = (memoryInGb: number, ...usd: [number, number, number]): GpuPrice => ({ memoryInGb, usd });

/** The first one is the default. */
export const gpuPrices = {
  "NVIDIA GeForce RTX 4090": gpu(24, 0.69, 0.34, 1.116),
  "NVIDIA A40": gpu(48, 0.4, 0.35, 1.224),
  "NVIDIA RTX A5000": gpu(24, 0.27, 0.16, 0.684),
  "NVIDIA GeForce RTX 5090": gpu(32, 0.94, 0.69, 1.584),
  "NVIDIA H100 80GB HBM3": gpu(80, 2.99, 2.69, 4.176),
  "NVIDIA GeForce RTX 3090": gpu(24, 0.46, 0.22, 0.684),
  "NVIDIA RTX A4500": gpu(20, 0.25, 0.19, 0.576),
  "NVIDIA L40S": gpu(48, 0.86, 0.79, 1.908),
  "NVIDIA H200": gpu(141, 3.99, 3.59, 5.58),
  "NVIDIA L4": gpu(24, 0.43, 0.44, 0.684),
  "NVIDIA RTX 6000 Ada Generation": gpu(48, 0.77, 0.74, 1.908),
  "NVIDIA A100-SXM4-80GB": gpu(80, 1.74, 1.39, 2.736),
  "NVIDIA RTX 4000 Ada Generation": gpu(20, 0.26, 0.2, 0.576),
  "NVIDIA RTX A6000": gpu(48, 0.49, 0.33, 1.224),
  "NVIDIA A100 80GB PCIe": gpu(80, 1.64, 1.19, 2.736),
  "NVIDIA RTX 2000 Ada Generation": gpu(16, 0.23, 0.2, 0.576),
  "NVIDIA RTX A4000": gpu(16, 0.25, 0.17, 0.576),
  "NVIDIA RTX PRO 6000 Blackwell Server Edition": gpu(96, 1.79, 1.69, 3.06),
  "NVIDIA H100 PCIe": gpu(80, 2.39, 1.99, 4.176),
  "NVIDIA H100 NVL": gpu(94, 2.79, 2.59, 4.176),
  "NVIDIA L40": gpu(48, 0.99, 0.69, 1.908),
  "NVIDIA B200": gpu(180, 5.98, 5.19, 8.64),
  "NVIDIA GeForce RTX 3080 Ti": gpu(12, 0.3, 0.18, 0.576),
  "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": gpu(96, 1.89, 1.69, 3.06),
  "NVIDIA GeForce RTX 3080": gpu(10, 0.28, 0.17, 0.576),
  "NVIDIA GeForce RTX 3070": gpu(8, 0.2, 0.13, 0.576),
  "AMD Instinct MI300X OAM": gpu(192, 2.49, 2.29, 4.176),
  "NVIDIA GeForce RTX 4080 SUPER": gpu(16, 0.5, 0.28, 0.684),
  "Tesla V100-PCIE-16GB": gpu(16, 0.29, 0.19, 0.576),
  "Tesla V100-SXM2-32GB": gpu(32, 0.49, 0.39, 0.684),
  "NVIDIA RTX 5000 Ada Generation": gpu(32, 0.69, 0.49, 1.224),
  "NVIDIA GeForce RTX 4070 Ti": gpu(12, 0.32, 0.19, 0.576),
  "NVIDIA RTX 4000 SFF Ada Generation": gpu(20, 0.26, 0.2, 0.576),
  "NVIDIA GeForce RTX 3090 Ti": gpu(24, 0.48, 0.27, 0.684),
  "NVIDIA RTX A2000": gpu(6, 0.15, 0.12, 0.576),
  "NVIDIA GeForce RTX 4080": gpu(16, 0.45, 0.27, 0.684),
  "NVIDIA A30": gpu(24, 0.39, 0.22, 0.684),
  "NVIDIA GeForce RTX 5080": gpu(16, 0.59, 0.39, 0.684),
  "Tesla V100-FHHL-16GB": gpu(16, 0.27, 0.19, 0.576),
  "NVIDIA H200 NVL": gpu(143, 3.59, 3.29, 5.58),
  "Tesla V100-SXM2-16GB": gpu(16, 0.29, 0.19, 0.576),
  "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": gpu(96, 1.79, 1.69, 3.06),
  "NVIDIA A5000 Ada": gpu(32, 0.59, 0.39, 0.684),
  "Tesla V100-PCIE-32GB": gpu(32, 0.39, 0.29, 0.684),
  "NVIDIA  RTX A4500": gpu(20, 0.25, 0.19, 0.576),
  "NVIDIA  A30": gpu(24, 0.39, 0.22, 0.684),
  "NVIDIA GeForce RTX 3080TI": gpu(12, 0.3, 0.18, 0.576),
  "Tesla T4": gpu(16, 0.22, 0.14, 0.576),
  "NVIDIA RTX A30": gpu(24, 0.39, 0.22, 0.684),
} as const satisfies Record<string, GpuPrice>;

export type GpuTypeId = keyof typeof gpuPrices;
export const gpuTypeIds = Object.keys(gpuPrices) as [GpuTypeId, ...GpuTypeId[]];

/** USD an hour for each vCPU, and the gigabytes that come with it. */
export const cpuPrices = {
  cpu3c: { usd: 0.03, memoryInGb: 2 },
  cpu3g: { usd: 0.04, memoryInGb: 4 },
  cpu3m: { usd: 0.06, memoryInGb: 8 },
  cpu5c: { usd: 0.035, memoryInGb: 2 },
  cpu5g: { usd: 0.045, memoryInGb: 4 },
  cpu5m: { usd: 0.065, memoryInGb: 8 },
} as const;
export type CpuFlavorId = keyof typeof cpuPrices;
export const cpuFlavorIds = Object.keys(cpuPrices) as [CpuFlavorId, ...CpuFlavorId[]];

/** What an interruptible Pod pays of the price. */
const spotShare = 0.5;
/** A gigabyte of network volume for an hour; a month comes to about seven cents. */
const volumeUsdPerGbHour = 0.0001;

export type Compute =
  | { readonly computeType: "GPU"; readonly gpuTypeId: GpuTypeId; readonly gpuCount: number }
  | { readonly computeType: "CPU"; readonly cpuFlavorId: CpuFlavorId; readonly vcpuCount: number };

export interface Tenancy {
  readonly secure: boolean;
  readonly interruptible: boolean;
}

export function podMicroUsdPerHour(compute: Compute, { secure, interruptible }: Tenancy): number {
  const share = interruptible ? spotShare : 1;
  if (compute.computeType === "CPU") return cpuMicroUsd(compute.cpuFlavorId, compute.vcpuCount * share);
  const [secureUsd, communityUsd] = gpuPrices[compute.gpuTypeId].usd;
  return microUsd((secure ? secureUsd : communityUsd) * compute.gpuCount * share);
}

export function workerMicroUsdPerHour(compute: Compute): number {
  if (compute.computeType === "CPU") return cpuMicroUsd(compute.cpuFlavorId, compute.vcpuCount);
  return microUsd(gpuPrices[compute.gpuTypeId].usd[2] * compute.gpuCount);
}

function cpuMicroUsd(flavor: CpuFlavorId, vcpus: number): number {
  return microUsd(cpuPrices[flavor].usd * vcpus);
}

export function volumeMicroUsdPerHour(gb: number): number {
  return microUsd(volumeUsdPerGbHour) * gb;
}

export function usd(amountMicroUsd: number): number {
  return amountMicroUsd / 1e6;
}

/** A GPU as it is answered with a Pod. */
export function describeGpu(id: GpuTypeId, count: number) {
  const [securePrice, communityPrice] = gpuPrices[id].usd;
  return {
    id,
    count,
    displayName: id.replace(/^(NVIDIA|AMD)\s+/, ""),
    securePrice,
    communityPrice,
    secureSpotPrice: securePrice * spotShare,
    communitySpotPrice: communityPrice * spotShare,
  };
}
