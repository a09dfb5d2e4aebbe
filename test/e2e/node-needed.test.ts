// A Node that is too old for the package is told in a sentence, and package.json demands the same one.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { neededNode, sayTooOld } from "../../src/cli/node-needed.ts";
import { root } from "../../src/cli/wrangler.ts";
import { run } from "./support/checkout.ts";

it.each(["20.20.2", "21.7.3", "22.0.0", "9.11.2"])("Node %s is too old", (version) => {
  expect(sayTooOld(version)).toBe(
    `Sluice needs Node 22.1 or later to serve, and this is Node ${version}: see https://nodejs.org`,
  );
});

it.each(["22.1.0", "22.23.2", "23.0.0", "100.0.0"])("Node %s is new enough", (version) => {
  expect(sayTooOld(version)).toBeUndefined();
});

it.each(["package.json", "package-lock.json"])("%s demands it", (name) => {
  const manifest = JSON.parse(readFileSync(join(root, name), "utf8"));
  expect((manifest.packages?.[""] ?? manifest).engines.node).toBe(`>=${neededNode}`);
});

it("the package's start loads nothing before it has looked", async () => {
  const entry = "src/cli/start-packaged.ts";
  expect([...readFileSync(join(root, entry), "utf8").matchAll(/^import .*/gm)].map(([line]) => line)).toEqual([
    'import { sayTooOld } from "./node-needed.ts";',
  ]);
  const older = "data:text/javascript,Object.defineProperty(process,'versions',{value:{node:'20.20.2'}})";
  const start = run(root, ["--import", older, entry]);
  expect([await start.ended, start.output()]).toEqual([1, `${sayTooOld("20.20.2")}\n`]);
});
