// Writes into a stopped object's own file: a million over the front door would take an hour.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Server } from "../../support/serve.ts";

/** The server must hold exactly one object of the class; it is stopped meanwhile. */
export async function plant(server: Server, className: string, act: (database: DatabaseSync) => void): Promise<void> {
  await server.kill9();
  const database = new DatabaseSync(fileOf(server, className));
  try {
    database.exec("BEGIN");
    act(database);
    database.exec("COMMIT");
  } finally {
    database.close();
  }
  await server.restart();
}

function fileOf(server: Server, className: string): string {
  const folder = join(server.disk, className);
  const [file, ...others] = readdirSync(folder).filter((name) => /^[0-9a-f]{64}\.sqlite$/.test(name));
  if (!file || others.length > 0) throw new Error(`planting needs a server with exactly one ${className}`);
  return join(folder, file);
}

/**
 * Copies the table's only row so many times. `changed` has the SQL of what makes a copy a row of its own, where `n` counts
 * from 1; what is `null` there is left to the table.
 */
export function copyRow(
  database: DatabaseSync,
  table: string,
  copies: number,
  changed: Readonly<Record<string, string | null>>,
): void {
  const columns = database.prepare("SELECT name FROM pragma_table_info(?)").all(table);
  const names = columns.map(({ name }) => String(name)).filter((name) => changed[name] !== null);
  const values = names.map((name) => changed[name] ?? name).join(", ");
  const numbers = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $copies)";
  const only = `(SELECT * FROM ${table} LIMIT 1)`;
  const insert = `${numbers} INSERT INTO ${table} (${names.join(", ")}) SELECT ${values} FROM ${only}, numbers`;
  database.prepare(insert).run({ copies });
}
