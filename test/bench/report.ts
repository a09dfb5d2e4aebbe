// What a bench found, as people read it: a table with where, when and how it was measured, printed or put into the documents.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join, relative } from "node:path";
import { root } from "../../src/cli/wrangler.ts";
import type { Jitter } from "./gateway/jitter.ts";
import type { Plot } from "./growth/plot.ts";
import { isMarked, putBetweenMarks } from "./marks.ts";
import { markdown, type Table } from "./table.ts";

export interface Found {
  readonly name: string;
  readonly title: string;
  readonly jitter: Jitter;
  readonly table: Table;
  readonly plots: readonly Plot[];
  /** What of it the README shows. */
  readonly brief: Brief;
}

export interface Brief {
  readonly table?: Table;
  readonly plots?: readonly Plot[];
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

/** All of it. Its plots are named as seen from the document that it stands in. */
export function reportOf({ title, jitter, table, plots }: Found, occasion: Occasion, document: string): string {
  return joined([`**${title}**`, markdown(table), imagesOf(plots, document), captionOf(jitter, occasion)]);
}

function briefOf({ jitter, brief: { table, plots = [] } }: Found, occasion: Occasion, document: string): string {
  const measured = table ? [markdown(table), captionOf(jitter, occasion)] : [];
  return joined([...measured, imagesOf(plots, document)]);
}

function captionOf(jitter: Jitter, { date, machine, command }: Occasion): string {
  const late = `timers late by ${jitter.p50Ms.toFixed(2)} ms, at p99 by ${jitter.p99Ms.toFixed(2)} ms`;
  return `<sub>${date.toISOString().slice(0, 10)}, \`${command}\`, ${machine}, ${late}</sub>`;
}

function imagesOf(plots: readonly Plot[], document: string): string {
  return plots.map(({ words, path }) => `![${words}](${relative(dirname(document), path)})`).join("\n");
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}

/** From the root. */
const documents = ["README.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)].filter((path) =>
  path.endsWith(".md"),
);

/** In place of what stands between the bench's own marks, all of it and in brief; false where there are no marks. */
export function putIntoDocuments(found: Found, occasion: Occasion): boolean {
  const put = documents.filter((document) => {
    const before = readFileSync(join(root, document), "utf8");
    const whole = putBetweenMarks(before, found.name, () => reportOf(found, occasion, document));
    const after = putBetweenMarks(whole, `${found.name} in brief`, () => briefOf(found, occasion, document));
    if (after !== before) writeFileSync(join(root, document), after);
    return isMarked(before, found.name);
  });
  return put.length > 0;
}
