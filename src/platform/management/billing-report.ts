// Sums over the kept hours, in the buckets and groups that a question asks for.
import { hourMs, hourOf } from "../hours.ts";
import type { Refusal } from "../queue/views.ts";
import { amountSql, type Kind } from "./ledger.ts";

export const bucketSizes = ["hour", "day", "week", "month", "year"] as const;
export type BucketSize = (typeof bucketSizes)[number];

/** The first hour of the bucket that an hour lies in. Days begin at midnight UTC, weeks on Monday. */
const bucketSql: Record<BucketSize, string> = {
  hour: "u.hour",
  day: "u.hour / 24 * 24",
  // 1970 began on a Thursday.
  week: "(u.hour + 72) / 168 * 168 - 72",
  month: "unixepoch(u.hour * 3600, 'unixepoch', 'start of month') / 3600",
  year: "unixepoch(u.hour * 3600, 'unixepoch', 'start of year') / 3600",
};

export type Grouping = "podId" | "endpointId" | "gpuTypeId";
const groupSql: Record<Kind, Partial<Record<Grouping, string>>> = {
  pod: { podId: "m.resource", gpuTypeId: "m.gpuTypeId" },
  endpoint: { endpointId: "m.resource", podId: "u.worker", gpuTypeId: "m.gpuTypeId" },
  volume: {},
};

export interface Question {
  readonly kind: Kind;
  readonly from: number;
  readonly to: number;
  readonly bucketSize: BucketSize;
  readonly grouping?: Grouping | undefined;
  /** What each must be one of; a list that is not there asks for nothing. */
  readonly only: Readonly<
    Partial<
      Record<"resource" | "gpuTypeId" | "dataCenterId" | "imageName" | "templateId", readonly string[] | undefined>
    >
  >;
}

export interface Sum extends Record<string, SqlStorageValue> {
  hour: number;
  of: string;
  ms: number;
  microUsd: number;
  gb: number;
}

/** What one call between objects carries, and a Worker holds, with much to spare. */
export const mostSums = 50_000;
const tooMany: Refusal = {
  refused: "INVALID_REQUEST",
  detail: `startTime: that is more than ${mostSums} records: ask about less time, or in larger buckets by bucketSize`,
};

/** Hours that lie in the asked time at least in part count whole. */
export function sumUp(
  sql: SqlStorage,
  { kind, from, to, bucketSize, grouping, only }: Question,
): readonly Sum[] | Refusal {
  const asked = Object.entries(only).flatMap(([column, values]) => (values ? [{ column, values }] : []));
  const tests = asked.map(({ column, values }) => ` AND m.${column} IN (${values.map(() => "?").join(", ")})`);
  const group = (grouping && groupSql[kind][grouping]) ?? "''";
  // A volume's size within a bucket is the largest that it had; the sizes of all volumes add up.
  const query = `
    SELECT hour, "of", SUM(ms) AS ms, SUM(microUsd) AS microUsd, SUM(gb) AS gb FROM (
      SELECT ${bucketSql[bucketSize]} AS hour, ${group} AS "of", SUM(u.ms) AS ms, SUM(${amountSql}) AS microUsd, MAX(m.gb) AS gb
      FROM usage u JOIN meters m ON m.key = u.meter
      WHERE u.kind = ? AND u.hour >= ? AND u.hour < ?${tests.join("")}
      GROUP BY 1, 2, m.resource
    ) GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?`;
  const values = asked.flatMap(({ values }) => values);
  const sums = sql.exec<Sum>(query, kind, hourOf(from), Math.ceil(to / hourMs), ...values, mostSums + 1).toArray();
  return sums.length > mostSums ? tooMany : sums;
}
