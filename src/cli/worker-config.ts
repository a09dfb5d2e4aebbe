// wrangler.toml, as wrangler reads it.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse, TomlError } from "smol-toml";
import { root } from "./wrangler.ts";

/** What is read of it, whose type wrangler does not bring along. */
export interface WorkerConfig {
  readonly name: string;
  readonly main: string;
  readonly account_id?: string;
  readonly compatibility_date: string;
  readonly compatibility_flags: readonly string[];
  readonly vars: Readonly<Record<string, unknown>>;
  readonly secrets: { readonly required: readonly string[] };
  readonly kv_namespaces: readonly { binding: string }[];
  readonly r2_buckets: readonly { binding: string; bucket_name?: string }[];
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

const needed = [
  ...(["name", "main", "compatibility_date", "compatibility_flags", "vars", "secrets"] as const),
  ...(["kv_namespaces", "r2_buckets", "ratelimits", "durable_objects"] as const),
] satisfies (keyof WorkerConfig)[];

/** Without wrangler, which a start does not install; test/e2e/bundle.test.ts holds that it would read the same. */
export function readWorkerConfig(file = join(root, "wrangler.toml")): WorkerConfig {
  const config = parseToml(readFileSync(file, "utf8"), basename(file));
  const missing = needed.find((name) => config[name] === undefined);
  if (missing !== undefined) throw new Error(`${basename(file)} has no ${missing}.`);
  return config as unknown as WorkerConfig;
}

function parseToml(text: string, file: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [reason = ""] = error.message.replace("Invalid TOML document: ", "").split("\n");
    throw new Error(`${file}:${error.line}:${error.column}: ${reason}`);
  }
}
