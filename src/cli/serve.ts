// What Miniflare is told to serve: the bundle with the bindings of wrangler.toml, kept on disk between starts.
// These are Miniflare's own options: the converter of the older ones drops what it does not know without a word.
import { createRequire, enableCompileCache } from "node:module";
import { join } from "node:path";
import type { MiniflareOptions, WorkerdStructuredLog } from "miniflare";
import type { Assets, WorkerConfig } from "./worker-config.ts";
import { root } from "./wrangler.ts";

/** The bundle's name in stack traces. */
export const bundleName = "index.js";

export interface Served {
  readonly host: string;
  readonly port: number;
  /** The folder that KV, R2, the objects and the cache are kept in. */
  readonly state: string;
  readonly code: string;
  readonly config: WorkerConfig;
  readonly settings: Readonly<Record<string, string>>;
  readonly hear: (line: WorkerdStructuredLog) => void;
  /** What Miniflare warns of, such as a workerd that ended and is started anew. */
  readonly warn: (message: string) => void;
}

const require = createRequire(import.meta.url);

/**
 * By `require`: `import` looks through its 4 MB for the names that it exports, which takes half a second. What Node
 * compiles of it is kept for the next start.
 */
export function loadMiniflare(): typeof import("miniflare") {
  enableCompileCache(join(root, "node_modules/.cache/sluice-compiled"));
  return require("miniflare");
}

type Worker = MiniflareOptions["workers"][number]["config"];

export function miniflareOptions(served: Served): MiniflareOptions {
  const { host, port, state, code, config, settings, hear } = served;
  return {
    host,
    port,
    resourcePersistencePath: state,
    // Else the place of this machine is asked for on the network.
    cf: false,
    // With structured logs the runtime says nothing of an uncaught exception unless it is asked for everything.
    verbose: true,
    handleStructuredLogs: hear,
    log: logOf(served),
    logRequests: false,
    workers: [
      {
        dev: { rootPath: root },
        config: {
          type: "worker",
          name: config.name,
          compatibilityDate: config.compatibility_date,
          compatibilityFlags: [...config.compatibility_flags],
          manifest: {
            mainModule: bundleName,
            modulesRoot: root,
            modules: { [bundleName]: { type: "esm", contents: code } },
          },
          env: bindingsOf(config, settings),
          exports: Object.fromEntries(
            config.durable_objects.bindings.map(({ class_name }) => [
              class_name,
              { type: "durable-object" as const, storage: "sqlite" as const },
            ]),
          ),
          ...(config.assets && { assets: assetsOf(config.assets) }),
        },
      },
    ],
  };
}

function logOf({ warn }: Served): InstanceType<typeof import("miniflare").Log> {
  const { Log, LogLevel } = loadMiniflare();
  const log = new Log(LogLevel.WARN);
  log.logWithLevel = (level, message) => level <= LogLevel.WARN && warn(message);
  return log;
}

function bindingsOf(config: WorkerConfig, settings: Readonly<Record<string, string>>): NonNullable<Worker["env"]> {
  refuseUnservedBindings(config);
  const texts = { ...config.vars, ...settings };
  const env: NonNullable<Worker["env"]> = {};
  for (const [name, value] of Object.entries(texts)) env[name] = { type: "text", value: String(value) };
  for (const { binding } of config.kv_namespaces) env[binding] = { type: "kv" };
  for (const { binding } of config.r2_buckets) env[binding] = { type: "r2" };
  for (const { name, class_name } of config.durable_objects.bindings) {
    env[name] = { type: "durable-object", workerName: config.name, exportName: class_name };
  }
  for (const { name, namespace_id, simple } of config.ratelimits) {
    env[name] = { type: "rate-limit", namespace: namespace_id, simple };
  }
  if (config.assets?.binding !== undefined) env[config.assets.binding] = { type: "assets" };
  return env;
}

/** The bindings that wrangler knows and this does not serve; what else wrangler.toml says is of deployments alone. */
export const unservedBindings = [
  ...["agent_memory", "ai", "ai_search", "ai_search_namespaces", "analytics_engine_datasets", "artifacts", "browser"],
  ...["d1_databases", "data_blobs", "dispatch_namespaces", "flagship", "hyperdrive", "images", "logfwdr", "media"],
  ...["mtls_certificates", "pipelines", "queues", "secrets_store_secrets", "send_email", "services", "site", "stream"],
  ...["text_blobs", "unsafe", "unsafe_hello_world", "vectorize", "version_metadata", "vpc_networks", "vpc_services"],
  ...["wasm_modules", "websearch", "worker_loaders", "workflows"],
];

/** A binding that a deployment would have and a developer would miss. */
function refuseUnservedBindings(config: WorkerConfig): void {
  const name = unservedBindings.find((each) => Object.hasOwn(config, each));
  if (name === undefined) return;
  throw new Error(`wrangler.toml names ${name}, which npm start does not serve: src/cli/serve.ts must learn it.`);
}

/** An asset is answered before the Worker, which is asked for every other path. */
function assetsOf(assets: Assets): NonNullable<Worker["assets"]> {
  return {
    directory: join(root, assets.directory),
    hasUserWorker: true,
    ...(assets.html_handling && { htmlHandling: assets.html_handling }),
    ...(assets.not_found_handling && { notFoundHandling: assets.not_found_handling }),
    ...(assets.run_worker_first !== undefined && { runWorkerFirst: assets.run_worker_first }),
  };
}
