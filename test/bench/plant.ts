// Plants waiting jobs into a stopped queue's own file: a hundred thousand over the protocol would take minutes.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Server } from "../support/serve.ts";

/** The endpoint must hold exactly one waiting job, which all others are copies of. */
export async function plantJobs(server: Server, count: number): Promise<void> {
  await server.kill9();
  const database = new DatabaseSync(fileOf(server));
  try {
    database.exec("BEGIN");
    copyJobs(database, count - 1);
    database.exec("COMMIT");
  } finally {
    database.close();
  }
  await server.restart();
}

function fileOf(server: Server): string {
  const folder = join(server.disk, "EndpointQueue");
  const [file, ...others] = readdirSync(folder).filter((name) => /^[0-9a-f]{64}\.sqlite$/.test(name));
  if (!file || others.length > 0) throw new Error("planting needs a server with exactly one queue");
  return join(folder, file);
}

function copyJobs(database: DatabaseSync, copies: number): void {
  const columns = database.prepare("SELECT name FROM pragma_table_info('jobs') WHERE name <> 'key'").all();
  const names = columns.map(({ name }) => String(name));
  /** What makes a copy a job of its own; `n` counts from 1. */
  const changed: Record<string, string> = { id: "id || '-' || n", position: "position + n", input: "input + n" };
  const numbers = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${copies})`;
  const values = names.map((name) => changed[name] ?? name).join(", ");
  database.exec(`${numbers} INSERT INTO jobs (${names.join(", ")}) SELECT ${values} FROM jobs, numbers`);
  database.exec(`${numbers} INSERT INTO payloads SELECT key + n, part, bytes FROM payloads, numbers`);
  const bytes = "bytes = bytes * (1 + $copies)";
  const added = ["position", "payload", "jobs", "waiting"].map((name) => `${name} = ${name} + $copies`).join(", ");
  database.prepare(`UPDATE totals SET ${bytes}, ${added}`).run({ copies });
}
