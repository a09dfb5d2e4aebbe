// wrangler.toml, as wrangler reads it.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { root } from "./wrangler.ts";

/** What is read of it, whose type wrangler does not bring along. */
export interface WorkerConfig {
  readonly name: string;
  readonly main: string;
  readonly compatibility_date: string;
  readonly compatibility_flags: readonly string[];
  readonly vars: Readonly<Record<string, unknown>>;
  readonly secrets: { readonly required: readonly string[] };
  readonly kv_namespaces: readonly { binding: string }[];
  readonly r2_buckets: readonly { binding: string }[];
  readonly ratelimits: readonly RateLimit[];
  readonly durable_objects: { readonly bindings: readonly { name: string; class_name: string }[] };
  readonly assets?: Assets;
}

export interface RateLimit {
  readonly name: string;
  readonly namespace_id: string;
  readonly simple: { readonly limit: number; readonly period: 10 | 60 };
}

export interface Assets {
  readonly directory: string;
  readonly binding?: string;
  readonly html_handling?: "auto-trailing-slash" | "drop-trailing-slash" | "force-trailing-slash" | "none";
  readonly not_found_handling?: "single-page-application" | "404-page" | "none";
  readonly run_worker_first?: boolean | string[];
}

/**
 * To load wrangler takes longer than the rest of a start, so what it read is kept beside the packages, by the file's
 * text and wrangler's version.
 */
export function readWorkerConfig(folder = root): WorkerConfig {
  const path = join(folder, "wrangler.toml");
  const { version } = JSON.parse(readFileSync(join(root, "node_modules/wrangler/package.json"), "utf8"));
  const key = createHash("sha256").update(`${version}\n${path}\n`).update(readFileSync(path)).digest("hex");
  const cache = join(root, "node_modules/.cache/sluice-config");
  const kept = join(cache, `${key.slice(0, 16)}.json`);
  try {
    return JSON.parse(readFileSync(kept, "utf8"));
  } catch {
    // Never read before, or by a start that ended while it wrote: it is read anew.
  }
  const wrangler: typeof import("wrangler") = createRequire(import.meta.url)("wrangler");
  const config = wrangler.unstable_readConfig({ config: path }, { hideWarnings: true }) as unknown as WorkerConfig;
  mkdirSync(cache, { recursive: true });
  writeFileSync(`${kept}.${process.pid}`, JSON.stringify(config));
  renameSync(`${kept}.${process.pid}`, kept);
  return config;
}

/** The names of all settings: a variable or a secret that is not named there is known to nobody. */
export function settingNamesOf({ vars, secrets }: WorkerConfig): readonly string[] {
  return [...Object.keys(vars), ...secrets.required];
}
