// wrangler.toml, as wrangler reads it.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
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

/** Without wrangler, which a start does not install; test/e2e/bundle.test.ts holds that it would read the same. */
export function readWorkerConfig(file = join(root, "wrangler.toml")): WorkerConfig {
  return parse(readFileSync(file, "utf8")) as unknown as WorkerConfig;
}
