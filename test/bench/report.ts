// What a bench found, as people read it: a table with where, when and how it was measured, printed or put into the README.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { root } from "../../src/cli/wrangler.ts";
import type { Jitter } from "./gateway/jitter.ts";
import { markdown, type Table } from "./table.ts";

export interface Found {
  readonly name: string;
  readonly title: string;
  readonly jitter: Jitter;
  readonly table: Table;
  /** Pictures of the table, as a page shows them. */
  readonly plots: readonly string[];
}

export interface Occasion {
  readonly date: Date;
  readonly machine: string;
  readonly command: string;
}

export function occasionOf(args: readonly string[]): Occasion {
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown"}, Node ${process.versions.node}`;
  return {
    date: new Date(),
    machine,
    command: ["npm run bench", ...(args.length > 0 ? ["--", ...args] : [])].join(" "),
  };
}

export function reportOf({ title, jitter, table, plots }: Found, { date, machine, command }: Occasion): string {
  const late = `timers late by ${jitter.p50Ms.toFixed(2)} ms, at p99 by ${jitter.p99Ms.toFixed(2)} ms`;
  const caption = `<sub>${date.toISOString().slice(0, 10)}, \`${command}\`, ${machine}, ${late}</sub>`;
  const parts = [`**${title}**`, markdown(table), plots.join("\n"), caption];
  return parts.filter((part) => part !== "").join("\n\n");
}

const docs = join(root, "docs");
const documents = [join(root, "README.md"), ...readdirSync(docs).map((name) => join(docs, name))];

/** In place of what stands between the bench's own marks, in the README or in `docs/`; false where there are none. */
export function putIntoDocuments(name: string, report: string): boolean {
  const [start, end] = [`<!-- bench ${name} -->\n`, `\n<!-- end of bench ${name} -->`];
  return documents.some((path) => {
    const text = readFileSync(path, "utf8");
    const [from, to] = [text.indexOf(start), text.indexOf(end)];
    if (from < 0 || to < from) return false;
    writeFileSync(path, `${text.slice(0, from)}${start}\n${report}\n${text.slice(to)}`);
    return true;
  });
}
