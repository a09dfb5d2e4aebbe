// What workerd is told to serve: the bundle with the bindings of wrangler.toml, each on a stand-in of this machine.
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { readWorkerConfig } from "../../src/cli/worker-config.ts";

interface Served {
  /** The folder of the built Worker, which lies beside the configuration, as `bundle`. */
  readonly bundle: string;
  /** Where the Durable Objects lie. */
  readonly disk: string;
  readonly settings: Readonly<Record<string, string>>;
  /** In place of what wrangler.toml says. */
  readonly floodLimit: number | undefined;
  /** Bindings that a bench replaces: the source of a module whose default export makes the binding. */
  readonly standIns: Readonly<Record<string, string>>;
  /** The source of a module that stands before the bundle, which it imports as `./index.js`. */
  readonly door: string | undefined;
  /** Where another process stands in for the cache, as `host:port`; else it is a Worker beside the gateway. */
  readonly cacheAt: string | undefined;
}

const moduleKinds: Record<string, string> = { ".js": "esModule", ".wasm": "wasm", ".bin": "data", ".txt": "text" };
/** A capnp text is written as JSON writes it. */
const text = (value: string) => JSON.stringify(value);
export const stub = (name: string) => readFileSync(join(import.meta.dirname, "stubs", `${name}.js`), "utf8");

export function workerdConfig({ bundle, disk, settings, floodLimit, standIns, door, cacheAt }: Served): string {
  const config = readWorkerConfig();
  const stores = [
    ...config.kv_namespaces.map(({ binding }) => ({ binding, kind: "kvNamespace", stub: "kv" })),
    ...config.r2_buckets.map(({ binding }) => ({ binding, kind: "r2Bucket", stub: "r2" })),
  ];
  const rates = config.ratelimits.map(({ name, simple: { limit, period } }) => ({
    ...{ name, limit: floodLimit ?? limit, period },
  }));
  const objects = config.durable_objects.bindings;
  const vars = { ...stringsOf(config.vars), ...settings };
  const bindings = [
    ...Object.entries(vars).map(([name, value]) => `(name = ${text(name)}, text = ${text(value)})`),
    ...objects.map(({ name, class_name }) =>
      name in standIns ? wrapped(name, name) : `(name = ${text(name)}, durableObjectNamespace = ${text(class_name)})`,
    ),
    ...stores.map(({ binding, kind }) => `(name = ${text(binding)}, ${kind} = ${text(`store-${binding}`)})`),
    ...rates.map((rate) => wrapped(rate.name, "rate", rate)),
  ];
  const namespaces = objects.map(
    ({ class_name }) => `(className = ${text(class_name)}, uniqueKey = ${text(class_name)}, enableSql = true)`,
  );
  const modules = { rate: stub("rate"), ...standIns };
  const flags = config.compatibility_flags.map(text).join(", ");
  const compatibility = `compatibilityDate = ${text(config.compatibility_date)}`;
  return `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [${[...doorModule(door), ...modulesOf(bundle)].join(", ")}],
      ${compatibility}, compatibilityFlags = [${flags}],
      bindings = [${bindings.join(",\n        ")}],
      durableObjectNamespaces = [${namespaces.join(", ")}],
      durableObjectStorage = (localDisk = "disk"),
      cacheApiOutbound = "store-cache",
    )),
    (name = "disk", disk = (path = ${text(disk)}, writable = true)),
    # Nothing that is served here may leave the machine.
    (name = "internet", network = (allow = ["local"])),
    ${stores.map(({ binding, stub: name }) => storeService(binding, name, compatibility)).join("\n    ")}
    ${cacheAt === undefined ? storeService("cache", "cache", compatibility) : cacheElsewhere(cacheAt)}
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", service = "main")],
  extensions = [(modules = [${Object.entries(modules).map(standInModule).join(", ")}])],
);
`;
}

function cacheElsewhere(address: string): string {
  return `(name = "store-cache", external = (address = ${text(address)}, http = (style = host))),`;
}

function storeService(binding: string, name: string, compatibility: string): string {
  const module = `(name = "stub", esModule = ${text(stub(name))})`;
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

function modulesOf(bundle: string): string[] {
  const files = readdirSync(bundle).filter((file) => extname(file) in moduleKinds);
  const main = (file: string) => (file === "index.js" ? 0 : 1);
  return files
    .sort((left, right) => main(left) - main(right))
    .map((file) => `(name = ${text(file)}, ${moduleKinds[extname(file)]} = embed ${text(`bundle/${file}`)})`);
}

function stringsOf(vars: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, String(value)]));
}
