// Filters of the list of Pods as SQL: the most telling one leads, so that its index is the one that is read.
import type { PodFilter } from "./pod-input.ts";

/** By how few rows each leaves, the fewest first. */
const columns = [
  ...(["id", "name", "networkVolumeId", "templateId", "image", "cpuFlavorId", "gpuTypeId", "dataCenterId"] as const),
  ...(["desiredStatus", "computeType"] as const),
];

export interface Where {
  readonly where: string;
  readonly bindings: readonly string[];
}

export function whereOf({ imageName, ...filter }: PodFilter): Where {
  const asked = { ...filter, image: imageName };
  const parts: string[] = [];
  const bindings: string[] = [];
  for (const column of columns) {
    const value = asked[column];
    if (value === undefined) continue;
    const values = typeof value === "string" ? [value] : value;
    // A plus sign keeps the planner from reading this column's index.
    const operand = parts.length === 0 ? column : `+${column}`;
    const test = values.length === 1 ? "= ?" : `IN (${values.map(() => "?").join(", ")})`;
    parts.push(`${operand} ${test}`);
    bindings.push(...values);
  }
  return { where: parts.length > 0 ? parts.join(" AND ") : "1", bindings };
}

/** The same question to a record in hand. */
export function matches(record: Readonly<Record<string, unknown>>, { imageName, ...filter }: PodFilter): boolean {
  const asked = { ...filter, image: imageName };
  return columns.every((column) => {
    const value = asked[column];
    if (value === undefined) return true;
    return typeof value === "string" ? record[column] === value : value.some((one) => one === record[column]);
  });
}
