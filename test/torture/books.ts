// The meters' own files read from outside, and held against what the upstream knows to be true.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TakenJob, trueCost } from "./hostile-upstream.ts";

interface Row {
  readonly admission: string;
  readonly upstreamId: string | null;
  readonly reserved: number;
  readonly charged: number;
  readonly assumed: number;
  readonly endedAt: number | null;
}

export interface Books {
  readonly rows: readonly Row[];
  /** What the meter says in sum: known, assumed, reserved. */
  readonly sums: { readonly known: number; readonly assumed: number; readonly reserved: number };
}

/** Of a server that does not run. */
export function readBooks(disk: string): Books[] {
  const folder = join(disk, "UserMeter");
  const files = readdirSync(folder).filter((name) => /^[0-9a-f]{64}\.sqlite$/.test(name));
  return files.map((file) => {
    const database = new DatabaseSync(join(folder, file));
    try {
      return { rows: readRows(database), sums: readSums(database) };
    } finally {
      database.close();
    }
  });
}

/** A meter that only looked has no tables, and one whose jobs are all open none for ended ones. */
function tablesOf(database: DatabaseSync): string[] {
  return database
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
    .all()
    .map(({ name }) => String(name));
}

function readRows(database: DatabaseSync): Row[] {
  const open = "SELECT admission, upstreamId, reserved, 0 AS charged, 0 AS assumed, NULL AS endedAt FROM jobs";
  const ended = "SELECT admission, upstreamId, reserved, charged, assumed, endedAt FROM ended";
  const tables = tablesOf(database);
  const queries = [...(tables.includes("jobs") ? [open] : []), ...(tables.includes("ended") ? [ended] : [])];
  return queries.flatMap((query) => database.prepare(query).all() as unknown as Row[]);
}

type EntryJson = [kind: string, known: number, assumed: number, reserved: number, forgiven: number];

function readSums(database: DatabaseSync): Books["sums"] {
  const row = tablesOf(database).includes("state") ? database.prepare("SELECT json FROM state").get() : undefined;
  const { payer } = row ? JSON.parse(String(row["json"])) : {};
  const sums = { known: 0, assumed: 0, reserved: 0 };
  for (const [, known, assumed, reserved] of Object.values<EntryJson>(payer?.money.spans.ever ?? {})) {
    sums.known += known;
    sums.assumed += assumed;
    sums.reserved += reserved;
  }
  return sums;
}

/** What is wrong, in words. */
export function audit(books: readonly Books[], jobs: ReadonlyMap<string, TakenJob>): string[] {
  const rows = new Map(books.flatMap((book) => book.rows.map((row) => [row.admission, row] as const)));
  return [...books.flatMap(auditSums), ...[...jobs.values()].flatMap((job) => auditJob(job, rows)), ...twice(rows)];
}

function auditSums({ rows, sums }: Books): string[] {
  const charged = (assumed: number) =>
    rows.filter((row) => row.assumed === assumed).reduce((sum, row) => sum + row.charged, 0);
  const faults: string[] = [];
  if (sums.reserved !== 0) faults.push(`a meter still reserves ${sums.reserved}`);
  if (sums.known !== charged(0)) faults.push(`a balance says ${sums.known} known, its jobs ${charged(0)}`);
  if (sums.assumed !== charged(1)) faults.push(`a balance says ${sums.assumed} assumed, its jobs ${charged(1)}`);
  return faults;
}

/** The notice's path names the admission, so a job is found in the books even where its answer was lost. */
function auditJob(job: TakenJob, rows: ReadonlyMap<string, Row>): string[] {
  const admission = job.hook.split(".")[1] ?? "";
  const row = rows.get(admission);
  if (!row) return [`${job.id} was taken, and no meter knows its admission`];
  const { upstreamId } = row;
  if (upstreamId !== null && upstreamId !== job.id) return [`${job.id} stands in the books as ${upstreamId}`];
  if (row.endedAt === null) return [`${job.id} never ended in the books`];
  if (row.assumed === 1) {
    // A job whose relay died is known by its notice alone: what it cost is true, and yet assumed.
    return [0, row.reserved, trueCost(job)].includes(row.charged) ? [] : [`${job.id} is assumed at ${row.charged}`];
  }
  return row.charged === trueCost(job) ? [] : [`${job.id} cost ${trueCost(job)} and was charged ${row.charged}`];
}

function twice(rows: ReadonlyMap<string, Row>): string[] {
  const ids = [...rows.values()].flatMap(({ upstreamId }) => (upstreamId === null ? [] : [upstreamId]));
  return ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `${id} stands in the books twice`);
}
