// What workerd is told to serve: the bundle with the bindings of wrangler.toml, each on a stand-in of this machine.
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { readWorkerConfig, type WorkerConfig } from "../../src/cli/worker-config.ts";

/** A Worker that was built, now or at a release. */
export interface Build {
  /** `index.js`, and beside it the modules that it imports as data. */
  readonly folder: string;
  /** The wrangler.toml that it was built with. */
  readonly wranglerToml: string;
}

export type Store = "cache" | "kv" | "r2";

interface Served {
  /** Its folder lies beside the configuration too, as `bundle`. */
  readonly build: Build;
  /** Whose Durable Objects the Worker calls, where they are not its own: as `objects` beside the configuration. */
  readonly objectsOf: Build | undefined;
  /** Where the Durable Objects lie. */
  readonly disk: string;
  readonly settings: Readonly<Record<string, string>>;
  /** In place of what wrangler.toml says. */
  readonly floodLimit: number | undefined;
  /** Bindings that a bench replaces: the source of a module whose default export makes the binding. */
  readonly standIns: Readonly<Record<string, string>>;
  /** The source of a module that stands before the bundle, which it imports as `./index.js`. */
  readonly door: string | undefined;
  /** Where other processes stand in for a store, as `host:port`, and outlive this one; else it is a Worker beside the gateway. */
  readonly storesAt: Readonly<Partial<Record<Store, string>>>;
  /** What every host on the internet is, as `host:port`; else it is this machine alone. */
  readonly internetAt: string | undefined;
}

const moduleKinds: Record<string, string> = { ".js": "esModule", ".wasm": "wasm", ".bin": "data", ".txt": "text" };
/** A capnp text is written as JSON writes it. */
const text = (value: string) => JSON.stringify(value);
export const stub = (name: string) => readFileSync(join(import.meta.dirname, "stubs", `${name}.js`), "utf8");

export function workerdConfig(served: Served): string {
  const { build, objectsOf, disk, standIns, door, storesAt, internetAt } = served;
  const config = readWorkerConfig(build.wranglerToml);
  const compatibility = `compatibilityDate = ${text(config.compatibility_date)}`;
  const stores = [...storesOf(config), { binding: "cache", store: "cache" } as const].map(({ binding, store }) => {
    const address = storesAt[store];
    return address === undefined ? storeHere(binding, store, compatibility) : storeElsewhere(binding, address);
  });
  const modules = { rate: stub("rate"), ...standIns };
  const main = [...doorModule(door), ...modulesOf(build, "bundle")];
  return `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    ${workerService("main", main, served, config, objectsOf && "objects")},
    ${objectsOf ? `${workerService("objects", modulesOf(objectsOf, "objects"), served, readWorkerConfig(objectsOf.wranglerToml), undefined)},` : ""}
    (name = "disk", disk = (path = ${text(disk)}, writable = true)),
    # Nothing that is served here may leave the machine.
    ${internetAt === undefined ? '(name = "internet", network = (allow = ["local"])),' : external("internet", internetAt)}
    ${stores.join("\n    ")}
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", service = "main")],
  extensions = [(modules = [${Object.entries(modules).map(standInModule).join(", ")}])],
);
`;
}

function storesOf(config: WorkerConfig) {
  return [
    ...config.kv_namespaces.map(({ binding }) => ({ binding, kind: "kvNamespace", store: "kv" as const })),
    ...config.r2_buckets.map(({ binding }) => ({ binding, kind: "r2Bucket", store: "r2" as const })),
  ];
}

/** With the Durable Objects of its own, or with those of another service. */
function workerService(
  name: string,
  modules: readonly string[],
  { settings, floodLimit, standIns }: Served,
  config: WorkerConfig,
  objectsService: string | undefined,
): string {
  const rates = config.ratelimits.map(({ name, simple: { limit, period } }) => ({
    name,
    limit: floodLimit ?? limit,
    period,
  }));
  const objects = config.durable_objects.bindings;
  const from = objectsService === undefined ? "" : `, serviceName = ${text(objectsService)}`;
  const bindings = [
    ...Object.entries({ ...stringsOf(config.vars), ...settings }).map(
      ([name, value]) => `(name = ${text(name)}, text = ${text(value)})`,
    ),
    ...objects.map(({ name, class_name }) =>
      name in standIns
        ? wrapped(name, name)
        : `(name = ${text(name)}, durableObjectNamespace = (className = ${text(class_name)}${from}))`,
    ),
    ...storesOf(config).map(({ binding, kind }) => `(name = ${text(binding)}, ${kind} = ${text(`store-${binding}`)})`),
    ...rates.map((rate) => wrapped(rate.name, "rate", rate)),
  ];
  const namespaces = objects.map(
    ({ class_name }) => `(className = ${text(class_name)}, uniqueKey = ${text(class_name)}, enableSql = true)`,
  );
  const own = `
      durableObjectNamespaces = [${namespaces.join(", ")}],
      durableObjectStorage = (localDisk = "disk"),`;
  const flags = config.compatibility_flags.map(text).join(", ");
  return `(name = ${text(name)}, worker = (
      modules = [${modules.join(", ")}],
      compatibilityDate = ${text(config.compatibility_date)}, compatibilityFlags = [${flags}],
      bindings = [${bindings.join(",\n        ")}],${objectsService === undefined ? own : ""}
      cacheApiOutbound = "store-cache",
    ))`;
}

function storeElsewhere(binding: string, address: string): string {
  return external(`store-${binding}`, address);
}

function external(name: string, address: string): string {
  return `(name = ${text(name)}, external = (address = ${text(address)}, http = (style = host))),`;
}

function storeHere(binding: string, store: Store, compatibility: string): string {
  const module = `(name = "stub", esModule = ${text(stub(store))})`;
  return `(name = ${text(`store-${binding}`)}, worker = (modules = [${module}], ${compatibility})),`;
}

function standInModule([name, source]: [string, string]): string {
  return `(name = ${text(`stub:${name}`)}, internal = true, esModule = ${text(source)})`;
}

function wrapped(binding: string, module: string, rule: object = {}): string {
  const inner = `(name = "rule", json = ${text(JSON.stringify(rule))})`;
  return `(name = ${text(binding)}, wrapped = (moduleName = ${text(`stub:${module}`)}, innerBindings = [${inner}]))`;
}

/** The first module is the Worker's own. */
function doorModule(source: string | undefined): string[] {
  return source === undefined ? [] : [`(name = "door.js", esModule = ${text(source)})`];
}

function modulesOf({ folder }: Build, as: string): string[] {
  const files = readdirSync(folder).filter((file) => extname(file) in moduleKinds);
  const main = (file: string) => (file === "index.js" ? 0 : 1);
  return files
    .sort((left, right) => main(left) - main(right))
    .map((file) => `(name = ${text(file)}, ${moduleKinds[extname(file)]} = embed ${text(`${as}/${file}`)})`);
}

function stringsOf(vars: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, String(value)]));
}
