// The doctor before a deployment: what it says of each account and each wrangler.toml.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { describe, expect, it } from "vitest";
import { checkAccount } from "../../src/cli/doctor-account.ts";
import { readWorkerConfig } from "../../src/cli/worker-config.ts";
import { root } from "../../src/cli/wrangler.ts";
import { readConfig } from "../../src/config.ts";
import { type AccountState, copyConfig, readerOf } from "./support/wrangler.ts";

const { required } = readWorkerConfig().secrets;
const sound: AccountState = { secrets: [...required] };
const set = (name: string, value: string) => (text: string) => text.replace(`${name} = ""`, `${name} = "${value}"`);

async function looked(account: AccountState, change?: (text: string) => string) {
  const findings = await checkAccount({ read: readerOf(account), folder: copyConfig(change), env: {} });
  const of = (what: string) => findings.filter((finding) => finding.what === what);
  return { of, faults: findings.filter(({ is }) => is === "fault").map(({ what, seen }) => `${what}: ${seen}`) };
}

describe("the doctor before a deployment", () => {
  it("finds no fault in a sound one, and says where it leads", async () => {
    const { of, faults } = await looked(sound);
    expect(faults).toEqual([]);
    expect(of("settings")[0]?.seen).toBe("in front of the embedded platform: a demo");
    expect(of("pages")[0]).toMatchObject({ is: "warning", todo: expect.stringContaining("ALLOWED_ORIGINS") });
    const { of: inFront } = await looked(sound, set("UPSTREAM_URL", "https://jobs.example.com"));
    expect(inFront("settings")[0]?.seen).toBe("in front of https://jobs.example.com");
  });

  it("looks at the settings where nobody is logged in", async () => {
    const { of, faults } = await looked({ loggedIn: false }, set("ANONYMOUS", "sometimes"));
    expect(faults).toEqual([
      "login: You are not logged in.",
      expect.stringMatching(/^settings: ANONYMOUS expected one of/),
    ]);
    expect(of("R2")[0]?.is).toBe("left out");
  });

  it("wants to know which account", async () => {
    const accounts = ["one", "two"].map((name) => ({ id: `id-of-${name}`, name }));
    const { of, faults } = await looked({ ...sound, accounts });
    expect(faults).toEqual(["account: one id-of-one, two id-of-two"]);
    expect(of("account")[0]?.todo).toContain("CLOUDFLARE_ACCOUNT_ID");
    const named = await looked({ ...sound, accounts }, (text) => `account_id = "id-of-two"\n${text}`);
    expect([named.faults, named.of("account")[0]?.seen]).toEqual([[], "two"]);
  });

  it("names missing secrets, and R2 where a demo needs it", async () => {
    const account: AccountState = { secrets: required.filter((name) => name !== "APP_SECRET"), r2: "not enabled" };
    expect((await looked(account)).faults).toEqual(["R2: not enabled in this account", "secrets: missing: APP_SECRET"]);
    const { of } = await looked(account, set("UPSTREAM_URL", "https://jobs.example.com"));
    expect(of("R2")[0]).toMatchObject({ is: "warning", todo: expect.stringContaining("without uploads") });
  });

  it.each([
    ["UPSTREAM_URL", "http://jobs.example.com", "settings: UPSTREAM_URL must be an https URL"],
    ["JWKS_URL", "https://id.example.com/keys", "settings: JWT_ISSUER is required with JWKS_URL"],
    ["ALLOWED_ORIGINS", "app.example.com", "settings: ALLOWED_ORIGINS expected origins"],
  ])("reads settings by the Worker's own schema: %s", async (name, value, problem) => {
    expect((await looked(sound, set(name, value))).faults[0]).toContain(problem);
  });

  it("knows a misspelt setting", async () => {
    const { faults } = await looked(sound, (text) => text.replace('ANONYMOUS = ""', 'ANONYMUS = "off"'));
    expect(faults).toEqual(["settings: wrangler.toml sets ANONYMUS, which is no setting. Did you mean ANONYMOUS?"]);
  });
});

describe(".dev.vars.example", () => {
  const example = parseEnv(readFileSync(join(root, ".dev.vars.example"), "utf8"));

  it("names only what a deployment may have, and no value that would do for a secret", () => {
    for (const name of Object.keys(example)) expect(required).toContain(name);
    for (const value of Object.values(example)) expect(["", "none"]).toContain(value);
  });

  it("lacks nothing but what is made, with which it is a demo", () => {
    const filled = Object.fromEntries(Object.entries(example).map(([name, value]) => [name, value || "x".repeat(32)]));
    const made = required.filter((name) => !(name in example));
    expect(made).toEqual(["SIGNING_SECRET", "PLATFORM_API_KEY"]);
    const all = { ...filled, ...Object.fromEntries(made.map((name) => [name, "y".repeat(32)])) };
    expect(readConfig(all)).toMatchObject({ ok: true, config: { upstream: { kind: "embedded" }, anonymous: "off" } });
  });
});
