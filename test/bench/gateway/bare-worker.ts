// A Worker of one file, served as the gateway is: the passthrough, the floor and the upstream beside it.
import { type Store, stub } from "../../support/serve-config.ts";
import { WorkerdProcess } from "../../support/serve-process.ts";
import { workerSource } from "./workers/source.ts";

const text = (value: string) => JSON.stringify(value);

export interface BareWorker {
  readonly script: "passthrough" | "least" | "floor" | "upstream" | Store;
  readonly upstream?: string;
}

export async function serveBare({ script, upstream = "" }: BareWorker): Promise<WorkerdProcess> {
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
        ${ledger ? '(name = "LEDGER", durableObjectNamespace = "Ledger"),' : ""}
      ],
      ${ledger ? objects : ""}
    )),
    (name = "disk", disk = (path = ${text(server.disk)}, writable = true)),
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
