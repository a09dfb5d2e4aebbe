// A Worker of one file, served as the gateway is: the passthrough, the floor and the upstream beside it.
import { type Store, stub } from "../../support/serve-config.ts";
import { WorkerdProcess } from "../../support/serve-process.ts";
import { workerSource } from "./workers/source.ts";

const text = (value: string) => JSON.stringify(value);

export interface BareWorker {
  readonly script: "passthrough" | "least" | "floor" | "upstream" | "bucket" | Store;
  readonly upstream?: string;
  /** Where the bucket of `bucket` lies. */
  readonly r2At?: string;
}

export async function serveBare({ script, upstream = "", r2At }: BareWorker): Promise<WorkerdProcess> {
  const server = new WorkerdProcess(true);
  const source = script === "cache" || script === "kv" || script === "r2" ? stub(script) : workerSource(script);
  const ledger = script === "floor";
  server.configure(`
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "main", esModule = ${text(source)})],
      compatibilityDate = "2026-08-01",
      bindings = [
        (name = "UPSTREAM", text = ${text(upstream)}),
        ${r2At === undefined ? "" : '(name = "MEDIA", r2Bucket = "r2"),'}
        ${ledger ? '(name = "LEDGER", durableObjectNamespace = "Ledger"),' : ""}
      ],
      ${ledger ? objects : ""}
    )),
    (name = "disk", disk = (path = ${text(server.disk)}, writable = true)),
    ${r2At === undefined ? "" : `(name = "r2", external = (address = ${text(r2At)}, http = (style = host))),`}
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", service = "main")],
);
`);
  await server.restart();
  return server;
}

const objects = `
      durableObjectNamespaces = [(className = "Ledger", uniqueKey = "Ledger", enableSql = true)],
      durableObjectStorage = (localDisk = "disk"),`;
