// What is installed: one copy of what wrangler runs, at its own versions, and nothing whose bytes are not known.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import manifest from "../package.json" with { type: "json" };

interface Package {
  readonly version: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly optional?: boolean;
  readonly hasInstallScript?: boolean;
  readonly os?: string;
  readonly cpu?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** By their path, such as `node_modules/wrangler`. */
function packagesOf(folder: string): [path: string, found: Package][] {
  const path = fileURLToPath(new URL(`../${folder}package-lock.json`, import.meta.url));
  const { packages } = JSON.parse(readFileSync(path, "utf8")) as { packages: Record<string, Package> };
  return Object.entries(packages).filter(([path]) => path !== "");
}
const copiesOf = (name: string) =>
  packagesOf("")
    .filter(([path]) => path.endsWith(`node_modules/${name}`))
    .map(([, { version }]) => version);
const [, wrangler] = packagesOf("").find(([path]) => path === "node_modules/wrangler") ?? [];

describe("what wrangler runs", () => {
  it.each(["miniflare", "esbuild", "workerd"])("has one copy of %s, of wrangler's own version", (name) => {
    expect(copiesOf(name)).toEqual([wrangler?.dependencies?.[name]]);
  });

  it("is declared where our own code imports it", () => {
    const { miniflare, esbuild } = manifest.devDependencies;
    expect({ miniflare, esbuild }).toEqual({
      miniflare: wrangler?.dependencies?.["miniflare"],
      esbuild: wrangler?.dependencies?.["esbuild"],
    });
  });
});

describe.each(["", "src/cli/node/", "test/clients/", "test/bench/peers/"])("%spackage-lock.json", (folder) => {
  it("knows the bytes of every package, and names no address", () => {
    const faults = packagesOf(folder).filter(([, { integrity, resolved }]) => !integrity || resolved);
    expect(faults).toEqual([]);
  });
});

it("lets no package run a script while it is installed, but those that place a binary", () => {
  const running = ["", "src/cli/node/", "test/clients/"].flatMap((folder) =>
    packagesOf(folder).filter(([, { hasInstallScript, optional }]) => hasInstallScript && !optional),
  );
  expect(running.map(([path]) => path.replace(/.*node_modules\//, "")).sort()).toEqual(
    Object.keys(manifest.allowScripts).sort(),
  );
});

it("has one Node for each system: the same version for all", () => {
  const nodes = packagesOf("src/cli/node/").map(([, found]) => found);
  expect(nodes.map(({ os, cpu }) => `${os} ${cpu}`).sort()).toEqual([
    "darwin arm64",
    "darwin x64",
    "linux arm64",
    "linux x64",
  ]);
  expect(new Set(nodes.map(({ version }) => version)).size).toBe(1);
  expect(nodes.every(({ optional }) => optional)).toBe(true);
});
