// What is left of objects whose time is over: a file, since the runtime keeps it, and no table in it.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** Those that belong to one job, one request or one user. */
const passing = ["UserMeter", "JobMedia", "SharedRequest", "Generation"];
const objectFile = /^[0-9a-f]{64}\.sqlite$/;

/** Of a server that does not run. */
export function objectFiles(disk: string, name: string): string[] {
  const folder = join(disk, name);
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter((file) => objectFile.test(file));
  return files.map((file) => join(folder, file));
}

/** The tables that the object made. */
export function tablesOf(database: DatabaseSync): string[] {
  const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
  return tables.map(({ name }) => String(name)).filter((name) => !/^(_cf_|sqlite_)/.test(name));
}

/** How many objects there were, and what is left of them. */
export function readLeftovers(disk: string): { readonly objects: number; readonly faults: string[] } {
  const files = passing.flatMap((name) => objectFiles(disk, name).map((file) => ({ name, file })));
  const faults = files.flatMap(({ name, file }) => {
    const database = new DatabaseSync(file);
    const tables = tablesOf(database).map((table) => {
      const row = database.prepare(`SELECT COUNT(*) AS rows FROM "${table}"`).get();
      return `${table} with ${row?.["rows"]} rows`;
    });
    database.close();
    return tables.length === 0 ? [] : [`${name} holds nothing any more, and has ${tables.join(", ")}: ${file}`];
  });
  return { objects: files.length, faults };
}
