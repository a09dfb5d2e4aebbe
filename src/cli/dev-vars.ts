// The settings of a developer's own machine: written once, never deployed, never committed.
import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { settingNames } from "../settings.ts";
import { writeFirst } from "./whole-file.ts";

export function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Every secret that wrangler.toml requires is named, so that nothing warns of a missing one. */
export function localSettings(): string {
  return [
    "# Written by `npm start`. Random secrets for this machine alone; `none` stands for one that is not needed.",
    "LOCAL=true",
    `SIGNING_SECRET=${randomSecret()}`,
    `APP_SECRET=${randomSecret()}`,
    `ADMIN_TOKEN=${randomSecret()}`,
    `PLATFORM_API_KEY=${randomSecret()}`,
    "UPSTREAM_API_KEY=none",
    "TURNSTILE_SECRET=none",
    "",
  ].join("\n");
}

/** Answers whether the file had to be written. A process that is killed in the middle leaves none. */
export function ensureDevVars(path: string): boolean {
  return !existsSync(path) && writeFirst(path, localSettings());
}

const randomNames = ["SIGNING_SECRET", "APP_SECRET", "ADMIN_TOKEN", "PLATFORM_API_KEY"] as const;

/**
 * Adds the random secrets that a file written by hand lacks, such as one that says only `ENDPOINTS=my-endpoint`: without
 * them every request is refused. No line of it is changed. A file for a deployment is left alone: it says that it is not
 * LOCAL, or has secrets and says nothing of it. Answers what was added.
 */
export function addMissingSecrets(path: string): string[] {
  const text = readFileSync(path, "utf8");
  const set = parseEnv(text) as Record<string, string>;
  const isLocal = set["LOCAL"] === undefined ? !randomNames.some((name) => name in set) : set["LOCAL"] === "true";
  const missing = randomNames.filter((name) => !(name in set));
  // An app needs no secret of its own, and nobody calls a platform that is not used.
  const optional = ["APP_SECRET", ...(set["UPSTREAM_URL"] ? ["PLATFORM_API_KEY"] : [])];
  if (!isLocal || missing.every((name) => optional.includes(name))) return [];
  const lines = missing.map((name) => `${name}=${randomSecret()}`);
  if (set["LOCAL"] === undefined) lines.unshift("LOCAL=true");
  const gap = text === "" || text.endsWith("\n") ? "" : "\n";
  appendFileSync(path, `${gap}# Added by \`npm start\`, for this machine alone.\n${lines.join("\n")}\n`);
  return missing;
}

/** What is set there, each setting with its text, and a sentence for each line that sets nothing though it is to. */
export function readDevVars(path: string): { set: Record<string, string>; unread: string[] } {
  const text = readFileSync(path, "utf8");
  return { set: parseEnv(text) as Record<string, string>, unread: sayUnread(".dev.vars", text) };
}

/** By their numbers alone: a line that cannot be read may hold a secret. */
export function sayUnread(file: string, text: string): string[] {
  return text.split(/\r?\n/).flatMap((line, index) => {
    const fault = faultOf(line.trim());
    return fault === undefined ? [] : [`Line ${index + 1} of ${file} ${fault}.`];
  });
}

function faultOf(line: string): string | undefined {
  if (line === "" || line.startsWith("#")) return undefined;
  const [, quote, rest] = /^[^=]+=\s*(["'`]?)(.*)$/.exec(line) ?? [];
  if (rest === undefined) return "is no NAME=value, and is left out";
  // Node reads on until such a quote, over lines and settings; no setting has more than one line.
  return quote && !rest.includes(quote) ? `opens a quote, ${quote}, that it does not close` : undefined;
}

/** A sentence for each setting of a file that nobody knows, with the known one that was probably meant. */
export function sayUnknown(file: string, set: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(set)
    .filter((name) => !names.includes(name))
    .map((name) => {
      const meant = nearest(name, names);
      return `${file} sets ${name}, which is no setting.${meant ? ` Did you mean ${meant}?` : ""}`;
    });
}

const names: readonly string[] = settingNames;
/** A word with more wrong letters is another word. */
const mostWrong = 3;

function nearest(name: string, known: readonly string[]): string | undefined {
  const byDistance = known.map((each) => ({ each, wrong: distance(name.toUpperCase(), each) }));
  const [best] = byDistance.toSorted((left, right) => left.wrong - right.wrong);
  return best && best.wrong <= mostWrong ? best.each : undefined;
}

/** How many letters must be added, removed or changed to turn one word into the other. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...to].entries()) {
      const [left = 0, above = 0, corner = 0] = [next[column], row[column + 1], row[column]];
      next.push(Math.min(left + 1, above + 1, corner + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
