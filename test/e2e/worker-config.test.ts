// A wrangler.toml that cannot be served is told by its fault's place.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
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
