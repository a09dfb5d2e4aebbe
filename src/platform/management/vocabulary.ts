// Words that the management interface knows: data centers, CUDA versions, CPU flavors, categories.

export const dataCenterIds = [
  "EU-RO-1",
  "CA-MTL-1",
  "EU-SE-1",
  "US-IL-1",
  "EUR-IS-1",
  "EU-CZ-1",
  "US-TX-3",
  "EUR-IS-2",
  "US-KS-2",
  "US-GA-2",
  "US-WA-1",
  "US-TX-1",
  "CA-MTL-3",
  "EU-NL-1",
  "US-TX-4",
  "US-CA-2",
  "US-NC-1",
  "OC-AU-1",
  "US-DE-1",
  "EUR-IS-3",
  "CA-MTL-2",
  "AP-JP-1",
  "EUR-NO-1",
  "EU-FR-1",
  "US-KS-3",
  "US-GA-1",
] as const;

export const cudaVersions = [
  "13.0",
  "12.9",
  "12.8",
  "12.7",
  "12.6",
  "12.5",
  "12.4",
  "12.3",
  "12.2",
  "12.1",
  "12.0",
  "11.8",
] as const;

export const categories = ["NVIDIA", "AMD", "CPU"] as const;
export const computeTypes = ["GPU", "CPU"] as const;
export const cloudTypes = ["SECURE", "COMMUNITY"] as const;
export const scalerTypes = ["QUEUE_DELAY", "REQUEST_COUNT"] as const;
export const endpointTypes = ["QB", "LB"] as const;
export const priorities = ["availability", "custom"] as const;
export const desiredStatuses = ["RUNNING", "EXITED", "TERMINATED"] as const;
export type DesiredStatus = (typeof desiredStatuses)[number];
