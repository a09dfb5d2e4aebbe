// The meters' own files read from outside, and held against what the upstream knows to be true.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TakenJob, trueCost } from "./hostile-upstream.ts";

interface Row {
  readonly admission: string;
  readonly ref: string | null;
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
      const columns = "admission, ref, reserved, charged, assumed, endedAt";
      const rows = database.prepare(`SELECT ${columns} FROM jobs`).all() as unknown as Row[];
      const sum = "SELECT COALESCE(SUM(known), 0) AS known, COALESCE(SUM(assumed), 0) AS assumed";
      const sums = database.prepare(`${sum}, COALESCE(SUM(reserved), 0) AS reserved FROM spend`).get();
      return { rows, sums: sums as unknown as Books["sums"] };
    } finally {
      database.close();
    }
  });
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
  if (row.ref !== null && row.ref !== job.id) return [`${job.id} stands in the books as ${row.ref}`];
  if (row.endedAt === null) return [`${job.id} never ended in the books`];
  if (row.assumed === 1) {
    return [0, row.reserved].includes(row.charged) ? [] : [`${job.id} is assumed at ${row.charged}`];
  }
  return row.charged === trueCost(job) ? [] : [`${job.id} cost ${trueCost(job)} and was charged ${row.charged}`];
}

function twice(rows: ReadonlyMap<string, Row>): string[] {
  const refs = [...rows.values()].flatMap(({ ref }) => (ref === null ? [] : [ref]));
  return refs.filter((ref, at) => refs.indexOf(ref) !== at).map((ref) => `${ref} stands in the books twice`);
}
