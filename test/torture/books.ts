// The meters' own files read from outside.
import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Job, notEnded } from "../../src/gateway/quota/job.ts";
import { type EndedRow, type OpenRow, readEnded, readOpen } from "../../src/gateway/quota/job-rows.ts";
import { objectFiles, tablesOf } from "./leftovers.ts";

export interface Sums {
  readonly known: number;
  readonly assumed: number;
  readonly reserved: number;
}

export interface Books {
  /** The object's, as hooks name it. */
  readonly meter: string;
  readonly rows: readonly Job[];
  /** The rows that the state has counted, as they were then: one that ended in its place since was open. */
  readonly counted: readonly Job[];
  /** What the state says in sum of these. */
  readonly sums: Sums;
  /** What of it belongs to rows that are gone. */
  readonly pruned: Sums;
}

/** Of a server that does not run, or live: then they are read and left alone. */
export function readBooks(disk: string, { isLive = false } = {}): Books[] {
  return objectFiles(disk, "UserMeter").map((file) => {
    const database = new DatabaseSync(file, { readOnly: isLive });
    try {
      const [jobs, ended] = readRows(database);
      const { turn, ...state } = readState(database);
      const counted = [...jobs.map((job) => ({ ...job, ...notEnded })), ...ended].filter((job) => job.turn <= turn);
      return { meter: basename(file, ".sqlite"), rows: [...jobs, ...ended], counted, ...state };
    } finally {
      database.close();
    }
  });
}

/** Webhooks that are still to be tried, and when the object's own alarm would ring. */
export function owedWebhooks(disk: string): string[] {
  return objectFiles(disk, "UserMeter").flatMap((file) => {
    const database = new DatabaseSync(file, { readOnly: true });
    try {
      if (!tablesOf(database).includes("outbox")) return [];
      const rows = database.prepare("SELECT admission, tries, dueAt FROM outbox").all();
      if (rows.length === 0) return [];
      const alarm = database.prepare("SELECT value / 1000000 AS at FROM _cf_METADATA WHERE key = 1").get();
      return rows.map((row) => `${JSON.stringify(row)}, alarm at ${String(alarm?.["at"] ?? "no time")}`);
    } finally {
      database.close();
    }
  });
}

/** A meter keeps the thousand jobs that ended last at a known cost, and more of those that may be corrected. */
export function hasPruned({ rows, pruned }: Books): boolean {
  const known = rows.filter(({ endedAt, assumed }) => endedAt !== null && assumed === 0);
  return known.length >= 1000 && pruned.known + pruned.assumed > 0;
}

/** A meter that only looked has no tables, and one whose jobs are all open none for ended ones. */
function readRows(database: DatabaseSync): [jobs: Job[], ended: Job[]] {
  const tables = tablesOf(database);
  const all = <T>(table: string) =>
    tables.includes(table) ? (database.prepare(`SELECT * FROM ${table}`).all() as unknown as T[]) : [];
  return [all<OpenRow>("jobs").map(readOpen), all<EndedRow>("ended").map(readEnded)];
}

type EntryJson = [kind: string, known: number, assumed: number, reserved: number, forgiven: number];
type SpansJson = Readonly<Record<string, Readonly<Record<string, EntryJson>>>>;

function readState(database: DatabaseSync): Pick<Books, "sums" | "pruned"> & { readonly turn: number } {
  const row = tablesOf(database).includes("state") ? database.prepare("SELECT json FROM state").get() : undefined;
  const { payer, turn = 0 } = row ? JSON.parse(String(row["json"])) : {};
  return { sums: sumOf(payer?.money.spans), turn, pruned: sumOf(payer?.pruned.spans) };
}

function sumOf(spans: SpansJson = {}): Sums {
  const sums = { known: 0, assumed: 0, reserved: 0 };
  for (const [, known, assumed, reserved] of Object.values(spans["ever"] ?? {})) {
    sums.known += known;
    sums.assumed += assumed;
    sums.reserved += reserved;
  }
  return sums;
}
