// The settings of a developer's own machine: written once, random, for this user alone, and enough to start with.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { unstable_readConfig as readWranglerConfig } from "wrangler";
import { addMissingSecrets, ensureDevVars, localSettings, randomSecret } from "../../src/cli/dev-vars.ts";
import { root } from "../../src/cli/wrangler.ts";
import { readConfig } from "../../src/config.ts";
import { run } from "./support/checkout.ts";

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

  it.each([
    ["an endpoint alone", "ENDPOINTS=my-endpoint"],
    ["LOCAL and an endpoint", "LOCAL=true\nENDPOINTS=my-endpoint\n"],
    ["a secret of the user's own", "LOCAL=true\nADMIN_TOKEN=mine\nENDPOINTS=my-endpoint"],
    ["nothing", ""],
  ])("that was written by hand, with %s, gets the secrets that it lacks, once", (_, text) => {
    const path = join(folder, ".dev.vars");
    writeFileSync(path, text);
    const added = addMissingSecrets(path);
    const whole = readFileSync(path, "utf8");
    expect(whole.startsWith(text)).toBe(true);
    const set = parseEnv(whole);
    expect(set).toMatchObject(parseEnv(text));
    expect(readConfig(set)).toMatchObject({ ok: true, config: { local: true } });
    expect(added).toEqual(expect.arrayContaining(["SIGNING_SECRET", "PLATFORM_API_KEY"]));
    expect(added).not.toContain(text.includes("mine") ? "ADMIN_TOKEN" : "LOCAL");
    expect(addMissingSecrets(path)).toEqual([]);
    expect(readFileSync(path, "utf8")).toBe(whole);
  });

  it.each([
    ["says that it is not LOCAL", "LOCAL=false\nENDPOINTS=my-endpoint\n"],
    ["has a secret, and says nothing of LOCAL", "ADMIN_TOKEN=a-deployment-s\n"],
    [
      "has all that is needed with a service of its own",
      "LOCAL=true\nSIGNING_SECRET=a\nADMIN_TOKEN=b\nUPSTREAM_URL=https://a.example\n",
    ],
  ])("that %s is left as it is", (_, text) => {
    const path = join(folder, ".dev.vars");
    writeFileSync(path, text);
    expect(addMissingSecrets(path)).toEqual([]);
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  const writing = (path: string) => {
    const script = `(await import("./src/cli/dev-vars.ts")).ensureDevVars(${JSON.stringify(path)})`;
    return ["--input-type=module", "--eval", `console.log(${script})`];
  };

  it.runIf(process.platform !== "win32")("is whole or not there, on a disk that is full", () => {
    const path = join(folder, ".dev.vars");
    const command = `trap '' XFSZ; ulimit -f 0; exec "$0" "$@"`;
    const full = spawnSync("bash", ["-c", command, process.execPath, ...writing(path)], {
      cwd: root,
      encoding: "utf8",
    });
    expect(full.stderr).toContain("EFBIG");
    expect(readdirSync(folder)).toEqual([]);
    expect(ensureDevVars(path)).toBe(true);
    expect(readConfig(parseEnv(readFileSync(path, "utf8")))).toMatchObject({ ok: true });
  });

  it("is the first one's of those that start at once", async () => {
    const path = join(folder, ".dev.vars");
    const starts = Array.from({ length: 4 }, () => run(root, writing(path)));
    await Promise.all(starts.map(({ ended }) => ended));
    expect(starts.map(({ output }) => output().trim()).sort()).toEqual(["false", "false", "false", "true"]);
    expect(readdirSync(folder)).toEqual([".dev.vars"]);
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
