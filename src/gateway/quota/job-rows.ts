// A job as SQL keeps it: what SQL checks, orders or searches as columns, the rest as one JSON list. A meter that wakes
// compiles its statements and reads its rows anew, and both cost by the column.
import type { Job } from "./job.ts";

const openColumns = ["turn", "reserved", "place"] as const;
const endedColumns = [
  "admission",
  "owner",
  "model",
  "admittedAt",
  ...openColumns,
  "status",
  "charged",
  "assumed",
  "endedAt",
] as const;

/** In the order of the list. A later version adds its own at the end: an older list has null there. */
const listed = [
  "admission",
  "owner",
  "account",
  "model",
  "kind",
  "operation",
  "plan",
  "planFrom",
  "counters",
  "admittedAt",
  "ttlMs",
  "retentionMs",
  "expiresAt",
  "dueAt",
  "upstreamId",
  "boundAt",
  "guessed",
  "doubtedAt",
  "seen",
  "seenAt",
  "noticeAt",
  "retryOf",
  "successor",
  "inputBytes",
  "pieces",
  "textBytes",
  "earlierCost",
  "hasNotice",
  "webhook",
  "noticed",
  "idempotencyKey",
  "network",
  "earlierText",
  "status",
  "charged",
  "assumed",
  "endedAt",
] as const satisfies readonly (keyof Job)[];

type Listed = Pick<Job, (typeof listed)[number]>;
export type OpenRow = Pick<Job, (typeof openColumns)[number]> & { readonly rest: string };
export type EndedRow = Pick<Job, (typeof endedColumns)[number]> & { readonly rest: string };

const amount = (column: string) =>
  `${column} INTEGER NOT NULL CHECK (typeof(${column}) = 'integer' AND ${column} >= 0)`;
const flag = (column: string) => `${column} INTEGER NOT NULL CHECK (${column} IN (0, 1))`;

export const openTable = `CREATE TABLE jobs (
  turn INTEGER PRIMARY KEY,
  ${amount("reserved")},
  ${flag("place")},
  rest TEXT NOT NULL
)`;

export const endedTable = `CREATE TABLE ended (
  admission TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  model TEXT NOT NULL,
  admittedAt INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  ${amount("reserved")},
  ${flag("place")},
  status TEXT NOT NULL,
  ${amount("charged")},
  ${flag("assumed")},
  endedAt INTEGER NOT NULL CHECK (endedAt >= admittedAt),
  rest TEXT NOT NULL
) WITHOUT ROWID`;

/** Each takes the values in the order of its columns. */
export const insertOpen = "INSERT INTO jobs VALUES (?, ?, ?, ?)";
export const updateOpen = "UPDATE jobs SET reserved = ?2, place = ?3, rest = ?4 WHERE turn = ?1";
export const writeEnded = "INSERT OR REPLACE INTO ended VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

export function openValues(job: Job) {
  return [job.turn, job.reserved, job.place, restOf(job)];
}

export function endedValues(job: Job) {
  return [...endedColumns.map((column) => job[column]), restOf(job)];
}

/** A row of `jobs`: of an open job, or of one that ended a moment ago. */
export function readOpen({ rest, ...columns }: OpenRow): Job {
  const fields = readRest(rest);
  return { ...fields, ...columns, charged: fields.charged ?? 0, assumed: fields.assumed ?? 0 };
}

export function readEnded({ rest, ...columns }: EndedRow): Job {
  return { ...readRest(rest), ...columns };
}

function restOf(job: Job): string {
  return JSON.stringify(listed.map((name) => job[name]));
}

function readRest(rest: string): Listed {
  const values = JSON.parse(rest) as unknown[];
  return Object.fromEntries(listed.map((name, at) => [name, values[at] ?? null])) as Listed;
}
