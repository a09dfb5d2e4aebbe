// The counter in KV, served as the gateway is: in one `workerd serve`, with a stand-in of KV for each place of the edge.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stub } from "../support/serve-config.ts";
import { WorkerdProcess } from "../support/serve-process.ts";

export const places = 3;

/** A capnp text is written as JSON writes it. */
const text = (value: string) => JSON.stringify(value);
const source = (file: string) => readFileSync(join(import.meta.dirname, file), "utf8");

export async function serveKvCounter(upstream: string): Promise<WorkerdProcess> {
  const numbers = Array.from({ length: places }, (_, n) => n + 1);
  const upstreamBinding = `(name = "UPSTREAM", text = ${text(upstream)})`;
  const services = [
    service(
      "edge",
      source("edge.js"),
      numbers.map((n) => `(name = "PLACE_${n}", service = "counter-${n}")`),
    ),
    service("store", stub("kv"), []),
    ...numbers.flatMap((n) => [
      service(`counter-${n}`, source("kv-counter.js"), [`(name = "COUNTS", kvNamespace = "kv-${n}")`, upstreamBinding]),
      service(`kv-${n}`, source("kv-at-a-place.js"), [`(name = "STORE", service = "store")`]),
    ]),
  ];
  const server = new WorkerdProcess(true);
  server.configure(`
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    ${services.join(",\n    ")},
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", service = "edge")],
);
`);
  await server.restart();
  return server;
}

function service(name: string, module: string, bindings: readonly string[]): string {
  const worker = [
    `modules = [(name = "main", esModule = ${text(module)})]`,
    `compatibilityDate = "2026-08-01"`,
    `bindings = [${bindings.join(", ")}]`,
  ];
  return `(name = ${text(name)}, worker = (${worker.join(", ")}))`;
}
