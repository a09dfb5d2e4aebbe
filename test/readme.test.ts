// What the README names is there, and what must be named is.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { unstable_readConfig as readWranglerConfig } from "wrangler";
import manifest from "../package.json" with { type: "json" };
import { settingNames } from "../src/config.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const readme = readFileSync(`${root}README.md`, "utf8");

/** The names in the first column of the table under a heading. */
function namesUnder(heading: string): string[] {
  const [, section = ""] = readme.split(`\n## ${heading}\n`);
  const rows = section.split("\n## ")[0]?.match(/^\| `.*?\|/gm) ?? [];
  return rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string));
}

describe("the README", () => {
  it("describes every setting, and no other", () => {
    expect(namesUnder("Settings").sort()).toEqual([...settingNames].sort());
  });

  it("gives a reason for every dependency, and for no other", () => {
    const packages = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies)];
    expect(namesUnder("Dependencies").sort()).toEqual(packages.sort());
  });

  it("names only scripts and files that are there", () => {
    const scripts = [...readme.matchAll(/npm run ([a-z:-]+)/g)].map(([, script]) => script as string);
    expect(scripts.filter((script) => !(script in manifest.scripts))).toEqual([]);
    const [, layout = ""] = /```\n(src\/\n[\s\S]*?)```/.exec(readme) ?? [];
    const entries = [...layout.matchAll(/^ {2}([\w.-]+\/?) /gm)].map(([, entry]) => `src/${entry}`);
    expect(entries.length).toBeGreaterThan(5);
    expect([...entries, "test/floors.test.ts", "LICENSE"].filter((path) => !existsSync(`${root}${path}`))).toEqual([]);
  });
});

describe("wrangler.toml", () => {
  it("declares every setting once, as a variable or a secret, with nothing in it", () => {
    const { vars, secrets } = readWranglerConfig({ config: `${root}wrangler.toml` });
    expect([...Object.keys(vars), ...(secrets?.required ?? [])].sort()).toEqual([...settingNames].sort());
    expect(Object.values(vars).filter((value) => value !== "")).toEqual([]);
  });
});
