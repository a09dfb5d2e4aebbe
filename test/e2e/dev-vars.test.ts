// The settings of a developer's own machine: written once, random, for this user alone, and enough to start with.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { unstable_readConfig as readWranglerConfig } from "wrangler";
import { ensureDevVars, localSettings, randomSecret } from "../../src/cli/dev-vars.ts";
import { readConfig } from "../../src/config.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe(".dev.vars", () => {
  it("is written once, and never over what is there", () => {
    const path = join(folder, ".dev.vars");
    expect(ensureDevVars(path)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    writeFileSync(path, "LOCAL=true\n");
    expect(ensureDevVars(path)).toBe(false);
    expect(readFileSync(path, "utf8")).toBe("LOCAL=true\n");
  });

  it("names every secret that wrangler.toml requires, so that nothing warns", () => {
    const { secrets } = readWranglerConfig({ config: fileURLToPath(new URL("../../wrangler.toml", import.meta.url)) });
    const required = secrets?.required ?? [];
    expect(required).toContain("SIGNING_SECRET");
    expect(Object.keys(parseEnv(localSettings()))).toEqual(expect.arrayContaining([...required]));
  });

  it("holds settings that the gateway takes as they are", () => {
    expect(readConfig(parseEnv(localSettings()))).toMatchObject({ ok: true, config: { local: true } });
  });

  it("holds secrets that would do for a deployment, each its own, and others each time", () => {
    const [first, second] = [parseEnv(localSettings()), parseEnv(localSettings())];
    expect(readConfig({ ...first, LOCAL: "" })).toMatchObject({ ok: true, config: { local: false } });
    const names = ["SIGNING_SECRET", "APP_SECRET", "ADMIN_TOKEN", "PLATFORM_API_KEY"];
    const values = [first, second].flatMap((settings) => names.map((name) => settings[name]));
    expect(new Set(values).size).toBe(8);
  });
});

describe("a random secret", () => {
  it("carries 256 bits, in characters that any shell and header takes", () => {
    expect(randomSecret()).toMatch(/^[\w-]{43}$/);
    expect(Buffer.from(randomSecret(), "base64url")).toHaveLength(32);
  });
});
