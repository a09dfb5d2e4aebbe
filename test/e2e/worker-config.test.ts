// A wrangler.toml that cannot be served is told by its fault's place. What is of deployments alone is no fault.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { miniflareOptions, unservedBindings } from "../../src/cli/serve.ts";
import { readWorkerConfig } from "../../src/cli/worker-config.ts";
import { root } from "../../src/cli/wrangler.ts";

const own = readFileSync(join(root, "wrangler.toml"), "utf8");
let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-"));
  file = join(folder, "wrangler.toml");
});
afterEach(() => rmSync(folder, { recursive: true }));

it.each<[string, (text: string) => string, string | RegExp]>([
  ["breaks TOML", (text) => `name = a secret\n${text}`, /^wrangler\.toml:1:\d+: invalid value$/],
  ["is empty", () => "", "wrangler.toml has no name."],
  ["lost its settings", (text) => text.replace("[vars]", "[values]"), "wrangler.toml has no vars."],
])("that %s", (_, change, told) => {
  writeFileSync(file, own);
  expect(readWorkerConfig(file)).toMatchObject({ name: "sluice" });
  writeFileSync(file, change(own));
  expect(() => readWorkerConfig(file)).toThrow(told);
});

describe("what npm start does not serve", () => {
  const served = {
    host: "127.0.0.1",
    port: 8787,
    state: "state",
    code: "",
    settings: {},
    hear: () => {},
    warn: () => {},
  };
  const optionsFor = (lines: string, tables = "") => {
    writeFileSync(file, `${lines}\n${own}\n${tables}\n`);
    return miniflareOptions({ ...served, config: readWorkerConfig(file) });
  };

  it.each([
    ["d1_databases", "[[d1_databases]]\nbinding = 'DB'"],
    ["queues", "[[queues.producers]]\nbinding = 'QUEUE'\nqueue = 'jobs'"],
    ["ai", "[ai]\nbinding = 'AI'"],
  ])("of bindings is refused by its name: %s", (name, tables) => {
    expect(() => optionsFor("", tables)).toThrow(`wrangler.toml names ${name}, which npm start does not serve`);
  });

  it.each([
    ['account_id = "an account"', ""],
    ['route = "ai.example.com/*"', ""],
    ["keep_vars = true", ""],
    ["logpush = true", ""],
    ["", '[[routes]]\npattern = "ai.example.com"\ncustom_domain = true'],
    ["", '[placement]\nmode = "smart"'],
    ["", "[limits]\ncpu_ms = 100"],
    ["", '[[tail_consumers]]\nservice = "tail"'],
    ["", '[triggers]\ncrons = ["0 0 * * *"]'],
    ["", "[env.staging]\nname = 'staging'"],
  ])("of deployments is nobody's concern: %s%s", (lines, tables) => {
    expect(optionsFor(lines, tables).workers[0]?.config.name).toBe("sluice");
  });

  it("is every binding of wrangler's own list that is not served", () => {
    const schema = readFileSync(join(root, "node_modules/wrangler/config-schema.json"), "utf8");
    const { properties } = JSON.parse(schema).definitions.RawConfig as { properties: Record<string, object> };
    const ofBindings = /not automatically inherited/;
    const bindings = Object.keys(properties).filter((name) => ofBindings.test(JSON.stringify(properties[name])));
    const others = [
      "define",
      "vars",
      "secrets",
      "cloudchamber",
      "containers",
      "tail_consumers",
      "streaming_tail_consumers",
    ];
    const isServed = (name: string) => new RegExp(`^\\[+${name}\\b`, "m").test(own);
    const unserved = bindings.filter((name) => !isServed(name) && !others.includes(name));
    expect(unserved.filter((name) => !unservedBindings.includes(name))).toEqual([]);
    for (const name of unservedBindings) expect(Object.keys(properties)).toContain(name);
  });
});
