// What `npm start` serves is what a deployment uploads.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { unstable_readConfig as readByWrangler } from "wrangler";
import { openBundler } from "../../src/cli/bundle.ts";
import { readWorkerConfig } from "../../src/cli/worker-config.ts";
import { root } from "../../src/cli/wrangler.ts";
import { bundle } from "../support/serve-bundle.ts";

it("the bundle is wrangler's, byte by byte", async () => {
  const folder = await bundle();
  const bundler = await openBundler(readWorkerConfig().main);
  const { code } = await bundler.build();
  await bundler.close();
  expect(readFileSync(join(folder, "index.js"), "utf8") === code).toBe(true);
  const modules = readdirSync(folder).filter((file) => /\.(js|wasm|bin|txt)$/.test(file));
  expect(modules).toEqual(["index.js"]);
});

it("wrangler.toml says to it what it says to wrangler", () => {
  const read = readWorkerConfig();
  expect(readByWrangler({ config: join(root, "wrangler.toml") }, { hideWarnings: true })).toMatchObject({
    ...read,
    main: join(root, read.main),
  });
});
