// Every setting: what it may hold, what it is when empty, and how a wrong one is named.
import { describe, expect, it } from "vitest";
import { type Config, readConfig } from "../src/config.ts";
import type { SettingName } from "../src/settings.ts";
import { deployedSettings, testSettings } from "./support/settings.ts";

type Change = Partial<Record<SettingName, unknown>>;

const strong = (name: string) => name.padEnd(32, "-");

function read(base: object, change: Change): Config {
  const reading = readConfig({ ...base, ...change });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return reading.config;
}
const locally = (change: Change) => read(testSettings, change);
const deployed = (change: Change) => read(deployedSettings, change);

function faultsOf(base: object, change: Change): string[] {
  const reading = readConfig({ ...base, ...change });
  return reading.ok ? [] : reading.faults.map(({ setting, problem }) => `${setting} ${problem}`);
}

describe("what a setting may hold", () => {
  it.each<[SettingName, string, Partial<Config>]>([
    ["LOCAL", "true", { local: true }],
    ["UPSTREAM_URL", "https://api.example.com", { upstream: { kind: "remote", url: "https://api.example.com" } }],
    ["UPSTREAM_URL", "https://api.example.com/", { upstream: { kind: "remote", url: "https://api.example.com" } }],
    ["UPSTREAM_URL", "https://api.example.com/v2", { upstream: { kind: "remote", url: "https://api.example.com" } }],
    ["UPSTREAM_URL", "https://api.example.com/v2/", { upstream: { kind: "remote", url: "https://api.example.com" } }],
    ["UPSTREAM_URL", "https://h.example.com/jobs", { upstream: { kind: "remote", url: "https://h.example.com/jobs" } }],
    ["UPSTREAM_URL", "https://h.example.com/a/v2", { upstream: { kind: "remote", url: "https://h.example.com/a" } }],
    ["UPSTREAM_URL", "HTTPS://API.example.com", { upstream: { kind: "remote", url: "https://api.example.com" } }],
    ["UPSTREAM_URL", "http://127.0.0.1:9000", { upstream: { kind: "remote", url: "http://127.0.0.1:9000" } }],
    ["UPSTREAM_API_KEY", "unused", { upstreamKeys: [testSettings.PLATFORM_API_KEY] }],
    [
      "MANAGEMENT_URL",
      "https://rest.example.com/v1/",
      { management: { url: "https://rest.example.com/v1", keys: ["k"] } },
    ],
    ["SIGNING_SECRET", "one", { signingSecrets: ["one"] }],
    ["SIGNING_SECRET", "new, old", { signingSecrets: ["new", "old"] }],
    ["APP_SECRET", "secret", { appSecret: "secret" }],
    ["ADMIN_TOKEN", " padded ", { adminToken: "padded" }],
    ["PLATFORM_API_KEY", "key", { platformKeys: new Map([["key", "default"]]), upstreamKeys: ["key"] }],
    ["PLATFORM_API_KEY", "a2V5PQ==", { platformKeys: new Map([["a2V5PQ==", "default"]]) }],
    ["PLATFORM_API_KEY", "ann=k1", { platformKeys: new Map([["k1", "ann"]]) }],
    [
      "PLATFORM_API_KEY",
      "ann=k1, bob=k2",
      {
        platformKeys: new Map([
          ["k1", "ann"],
          ["k2", "bob"],
        ]),
        upstreamKeys: ["k1"],
      },
    ],
    [
      "PLATFORM_API_KEY",
      "ann=new,ann=old",
      {
        platformKeys: new Map([
          ["new", "ann"],
          ["old", "ann"],
        ]),
      },
    ],
    ["DEFAULT_PLAN", "pro", { defaultPlan: "pro" }],
    ["ANONYMOUS", "open", { anonymous: "open" }],
    ["ANONYMOUS", "turnstile", { anonymous: "turnstile", turnstileSecret: "t" }],
    ["ANONYMOUS", "off", { anonymous: "off" }],
    ["SESSION_PLAN", "anonymous", { sessionPlan: "anonymous" }],
    ["SESSION_PLAN", "pro", { sessionPlan: "pro" }],
    ["SESSION_PLAN", "developer", { sessionPlan: "developer" }],
    ["SESSION_PLAN", "", { sessionPlan: "developer" }],
    ["ALLOWED_ORIGINS", "*", { allowedOrigins: ["*"] }],
    [
      "ALLOWED_ORIGINS",
      "https://App.example.com, https://*.example.com,http://localhost:5173",
      { allowedOrigins: ["https://app.example.com", "https://*.example.com", "http://localhost:5173"] },
    ],
    ["ALLOWED_ORIGINS", "https://App.example.com/, *", { allowedOrigins: ["https://app.example.com", "*"] }],
    ["PUBLIC_URL", "HTTPS://ai.example.com:443", { publicUrl: "https://ai.example.com" }],
    ["PUBLIC_URL", "https://ai.example.com/", { publicUrl: "https://ai.example.com" }],
    ["IMAGE_REUSE", "seeded", { imageReuse: "seeded" }],
    ["IMAGE_REUSE", "always", { imageReuse: "always" }],
    ["IMAGE_REUSE", "never", { imageReuse: "never" }],
    ["REUSE_SCOPE", "user", { reuseScope: "user" }],
    ["REUSE_SCOPE", "shared", { reuseScope: "shared" }],
    ["IMAGE_LINKS", "gateway", { imageLinks: "gateway" }],
    ["IMAGE_LINKS", "upstream", { imageLinks: "upstream" }],
    ["MEDIA_HOSTS", "Media.example.com,127.0.0.1:9000", { mediaHosts: ["media.example.com", "127.0.0.1:9000"] }],
    ["WEBHOOK_HOSTS", "hooks.example.com", { webhookHosts: ["hooks.example.com"] }],
    ["BUDGET_DAY_USD", "0", { budget: { dayMicroUsd: 0, monthMicroUsd: undefined } }],
    ["BUDGET_DAY_USD", "25", { budget: { dayMicroUsd: 25_000_000, monthMicroUsd: undefined } }],
    ["BUDGET_MONTH_USD", "0.000001", { budget: { dayMicroUsd: undefined, monthMicroUsd: 1 } }],
    [
      "ENDPOINTS",
      "mine, yours=http://10.0.0.7:8000|https://W.example.com/",
      {
        endpoints: new Map([
          ["mine", undefined],
          ["yours", ["http://10.0.0.7:8000", "https://w.example.com"]],
        ]),
      },
    ],
    ["PLATFORM_CREDITS", "2.5", { platformCredits: new Map([["*", 2_500_000]]) }],
    [
      "PLATFORM_CREDITS",
      "ann=1, bob=0",
      {
        platformCredits: new Map([
          ["ann", 1_000_000],
          ["bob", 0],
        ]),
      },
    ],
    ["SAMPLE_DELAY_MS", "0", { sampleDelayMs: 0 }],
    ["SAMPLE_DELAY_MS", "1500", { sampleDelayMs: 1500 }],
  ])("%s = %s", (setting, value, expected) => {
    // What these two lean on is there; everything else is as in the tests.
    const besides = { TURNSTILE_SECRET: "t", UPSTREAM_API_KEY: "k" };
    expect(locally({ ...besides, [setting]: value })).toMatchObject(expected);
  });

  it("takes the verified users' settings together", () => {
    const jwt = {
      JWKS_URL: "https://id.example.com/keys?v=1",
      JWT_ISSUER: "https://id.example.com/",
      JWT_AUDIENCE: "app",
    };
    expect(deployed(jwt).jwt).toEqual({
      url: "https://id.example.com/keys?v=1",
      issuer: "https://id.example.com/",
      audience: "app",
      planClaim: undefined,
    });
    expect(deployed({ ...jwt, JWT_PLAN_CLAIM: "plan" }).jwt?.planClaim).toBe("plan");
  });

  it("sends the upstream's key upstream, and the platform's own key to the platform", () => {
    const upstream = { UPSTREAM_URL: "https://api.example.com", UPSTREAM_API_KEY: strong("upstream") };
    expect(deployed(upstream).upstreamKeys).toEqual([strong("upstream")]);
    expect(deployed({ ...upstream, UPSTREAM_URL: "" }).upstreamKeys).toEqual([testSettings.PLATFORM_API_KEY]);
  });

  it("holds the new key of the model service and the old one, both strong", () => {
    const both = `${strong("new")},${strong("old")}`;
    const rotating = {
      UPSTREAM_URL: "https://api.example.com",
      UPSTREAM_API_KEY: both,
      MANAGEMENT_URL: "https://r.example.com",
    };
    const keys = [strong("new"), strong("old")];
    expect(deployed(rotating)).toMatchObject({ upstreamKeys: keys, management: { keys } });
    const weak = { ...deployedSettings, ...rotating, UPSTREAM_API_KEY: `${strong("new")},old` };
    expect(readConfig(weak)).toMatchObject({ ok: false, faults: [{ setting: "UPSTREAM_API_KEY" }] });
    const escaped = { ...deployedSettings, ...rotating, UPSTREAM_API_KEY: `${strong("new")}\\x` };
    expect(readConfig(escaped)).toMatchObject({ ok: false, faults: [{ setting: "UPSTREAM_API_KEY" }] });
    const spelled = { ...deployedSettings, ...rotating, UPSTREAM_API_KEY: `${strong("new")} x` };
    expect(readConfig(spelled)).toMatchObject({ ok: false, faults: [{ setting: "UPSTREAM_API_KEY" }] });
  });

  it("never manages with the platform's own key", () => {
    const management = { MANAGEMENT_URL: "https://rest.example.com/v1", UPSTREAM_API_KEY: strong("upstream") };
    expect(deployed(management)).toMatchObject({
      management: { keys: [strong("upstream")] },
      upstreamKeys: [testSettings.PLATFORM_API_KEY],
    });
  });
});

describe("what a setting may not hold", () => {
  it.each<[SettingName, unknown, RegExp]>([
    ["LOCAL", "yes", /expected one of true, false/],
    ["UPSTREAM_URL", "api.example.com", /expected a URL/],
    ["UPSTREAM_URL", "ftp://api.example.com", /expected a URL/],
    ["UPSTREAM_URL", "https://api.example.com?key=1", /no query/],
    ["UPSTREAM_URL", "https://api.example.com#v2", /no fragment/],
    ["UPSTREAM_URL", "https://me:word@api.example.com", /no credentials/],
    ["UPSTREAM_URL", "https://me@api.example.com", /no credentials/],
    ["MANAGEMENT_URL", "rest", /expected a URL/],
    ["MANAGEMENT_URL", "https://rest.example.com/v1?x", /no query/],
    ["JWKS_URL", "keys.json", /expected a URL/],
    ["PUBLIC_URL", "ai.example.com", /expected a URL/],
    ["PUBLIC_URL", "http://127.0.0.1:8903/x", /must be an origin, such as https:\/\/ai\.example\.com, without a path/],
    ["PUBLIC_URL", "https://ai.example.com/v2/", /must be an origin/],
    ["PUBLIC_URL", "https://ai.example.com/?x", /no query/],
    ["SIGNING_SECRET", "", /is required/],
    ["SIGNING_SECRET", "none", /is required/],
    ["SIGNING_SECRET", " , ", /is required/],
    ["SIGNING_SECRET", undefined, /is required/],
    ["ADMIN_TOKEN", "", /is required/],
    ["ADMIN_TOKEN", 42, /expected string/],
    ["PLATFORM_API_KEY", "", /is required/],
    ["PLATFORM_API_KEY", ",", /is required/],
    ["PLATFORM_API_KEY", "one,two", /expected one key, or account=key/],
    ["PLATFORM_API_KEY", "ann=k1,k2", /expected one key, or account=key/],
    ["PLATFORM_API_KEY", "ann=k1,bob=k1", /each key once/],
    ["DEFAULT_PLAN", "a plan", /expected letters/],
    ["ANONYMOUS", "on", /expected one of open, turnstile, off/],
    ["SESSION_PLAN", "team", /expected one of anonymous, free, pro, unlimited, developer/],
    ["ALLOWED_ORIGINS", "app.example.com", /expected origins/],
    ["ALLOWED_ORIGINS", "https://app.example.com/page", /expected origins/],
    ["ALLOWED_ORIGINS", "https://app.example.com//", /expected origins/],
    ["ALLOWED_ORIGINS", "*/", /expected origins/],
    ["ALLOWED_ORIGINS", "https://app.*.example.com", /expected origins/],
    ["ALLOWED_ORIGINS", "https://ok.example.com,null", /expected origins/],
    ["IMAGE_REUSE", "sometimes", /expected one of seeded, always, never/],
    ["REUSE_SCOPE", "all", /expected one of user, shared/],
    ["IMAGE_LINKS", "direct", /expected one of gateway, upstream/],
    ["MEDIA_HOSTS", "https://media.example.com", /expected host names/],
    ["WEBHOOK_HOSTS", "*.example.com", /expected host names/],
    ["BUDGET_DAY_USD", "-1", /expected an amount/],
    ["BUDGET_DAY_USD", "1e3", /expected an amount/],
    ["BUDGET_MONTH_USD", "0.0000001", /expected an amount/],
    ["ENDPOINTS", "mine,with space", /expected letters/],
    ["ENDPOINTS", "mine=", /or name=url\|url/],
    ["ENDPOINTS", "mine=ftp://w.example.com", /or name=url\|url/],
    ["ENDPOINTS", "mine=https://w.example.com/path", /or name=url\|url/],
    ["ENDPOINTS", "mine=https://user:pass@w.example.com", /or name=url\|url/],
    ["PLATFORM_CREDITS", "much", /expected an amount in USD, or account=USD/],
    ["PLATFORM_CREDITS", "ann=", /expected an amount in USD, or account=USD/],
    ["SAMPLE_DELAY_MS", "1.5", /expected milliseconds, from 0 to 999999/],
    ["SAMPLE_DELAY_MS", "1000000", /expected milliseconds/],
  ])("%s = %s", (setting, value, problem) => {
    const faults = faultsOf(testSettings, { [setting]: value });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(problem);
    expect(faults[0]?.startsWith(`${setting} `)).toBe(true);
  });

  it.each<[string, Change, string[]]>([
    [
      "a real upstream needs its key",
      { UPSTREAM_URL: "https://api.example.com" },
      ["UPSTREAM_API_KEY is required with UPSTREAM_URL"],
    ],
    [
      "so does its management",
      { MANAGEMENT_URL: "https://rest.example.com/v1" },
      ["UPSTREAM_API_KEY is required with MANAGEMENT_URL"],
    ],
    [
      "verified users need an issuer and an audience",
      { JWKS_URL: "https://id.example.com/keys" },
      ["JWT_ISSUER is required with JWKS_URL", "JWT_AUDIENCE is required with JWKS_URL"],
    ],
    [
      "turnstile needs its secret",
      { ANONYMOUS: "turnstile" },
      ["TURNSTILE_SECRET is required with ANONYMOUS = turnstile"],
    ],
  ])("%s", (_, change, expected) => {
    expect(faultsOf(testSettings, change)).toEqual(expected);
  });

  it("is never repeated in the fault: it may be a secret in the wrong place", () => {
    const secret = "s3cret value/with?every#thing,in=it";
    for (const setting of Object.keys(testSettings)) {
      expect(faultsOf(deployedSettings, { [setting]: secret }).join()).not.toContain("s3cret");
    }
    expect(faultsOf(deployedSettings, { UPSTREAM_URL: secret, ENDPOINTS: secret }).join()).not.toContain("s3cret");
  });
});

describe("on a developer's machine", () => {
  it("is open to every page and visitor, and serves by itself", () => {
    expect(locally({})).toEqual({
      local: true,
      upstream: { kind: "embedded" },
      upstreamKeys: [testSettings.PLATFORM_API_KEY],
      management: undefined,
      signingSecrets: [testSettings.SIGNING_SECRET],
      appSecret: testSettings.APP_SECRET,
      adminToken: testSettings.ADMIN_TOKEN,
      platformKeys: new Map([[testSettings.PLATFORM_API_KEY, "default"]]),
      jwt: undefined,
      defaultPlan: "free",
      anonymous: "open",
      sessionPlan: "anonymous",
      turnstileSecret: undefined,
      allowedOrigins: ["*"],
      publicUrl: undefined,
      imageReuse: "seeded",
      reuseScope: "user",
      imageLinks: "gateway",
      mediaHosts: [],
      webhookHosts: ["localhost", "127.0.0.1"],
      budget: { dayMicroUsd: undefined, monthMicroUsd: undefined },
      endpoints: new Map(),
      platformCredits: new Map(),
      sampleDelayMs: 0,
    });
    expect(locally({ SAMPLE_DELAY_MS: "" }).sampleDelayMs).toBe(400);
  });

  it("takes short secrets, and http", () => {
    const short = { SIGNING_SECRET: "a", ADMIN_TOKEN: "b", PLATFORM_API_KEY: "c", UPSTREAM_API_KEY: "d" };
    expect(faultsOf(testSettings, { ...short, UPSTREAM_URL: "http://localhost:9000" })).toEqual([]);
  });
});

describe("anywhere else", () => {
  it.each(["", "false", undefined])("LOCAL = %s is closed to pages and visitors until told otherwise", (LOCAL) => {
    expect(deployed({ LOCAL })).toMatchObject({
      local: false,
      anonymous: "off",
      allowedOrigins: [],
      webhookHosts: [],
    });
  });

  it("opens as far as it is told", () => {
    const open = { ANONYMOUS: "open", ALLOWED_ORIGINS: "https://app.example.com", WEBHOOK_HOSTS: "hooks.example.com" };
    expect(deployed(open)).toMatchObject({
      anonymous: "open",
      allowedOrigins: ["https://app.example.com"],
      webhookHosts: ["hooks.example.com"],
    });
  });

  it.each<SettingName>(["SIGNING_SECRET", "ADMIN_TOKEN", "UPSTREAM_API_KEY"])("%s is required", (setting) => {
    const upstream = { UPSTREAM_URL: "https://api.example.com", UPSTREAM_API_KEY: strong("upstream") };
    expect(faultsOf(deployedSettings, upstream)).toEqual([]);
    for (const nothing of ["", "none", undefined]) {
      const [fault, ...others] = faultsOf(deployedSettings, { ...upstream, [setting]: nothing });
      expect(fault).toMatch(new RegExp(`^${setting} is required( with UPSTREAM_URL)?$`));
      expect(others).toEqual([]);
    }
  });

  it("PLATFORM_API_KEY is required where the platform answers, and lets nobody in where there is none", () => {
    const upstream = { UPSTREAM_URL: "https://api.example.com", UPSTREAM_API_KEY: strong("upstream") };
    expect(faultsOf(deployedSettings, { PLATFORM_API_KEY: "none" })).toEqual(["PLATFORM_API_KEY is required"]);
    const config = deployed({ ...upstream, PLATFORM_API_KEY: "none" });
    expect(config.platformKeys.size).toBe(0);
  });

  const tooShort = "must be at least 32 bytes";
  it.each<[SettingName, string, string[]]>([
    ["SIGNING_SECRET", "x".repeat(32), []],
    ["SIGNING_SECRET", "x".repeat(31), [tooShort]],
    ["SIGNING_SECRET", "é".repeat(16), []],
    ["SIGNING_SECRET", `${"é".repeat(15)}x`, [tooShort]],
    ["SIGNING_SECRET", `${"x".repeat(32)},${"y".repeat(32)}`, []],
    ["SIGNING_SECRET", `${"x".repeat(32)},${"y".repeat(31)}`, [tooShort]],
    ["SIGNING_SECRET", `${"x".repeat(31)},${"y".repeat(32)}`, [tooShort]],
    ["ADMIN_TOKEN", "x".repeat(32), []],
    ["ADMIN_TOKEN", "x".repeat(31), [tooShort]],
    ["APP_SECRET", "x".repeat(32), []],
    ["APP_SECRET", "x".repeat(31), [tooShort]],
    ["APP_SECRET", "", []],
    ["PLATFORM_API_KEY", "x".repeat(32), []],
    ["PLATFORM_API_KEY", "x".repeat(31), [tooShort]],
    ["PLATFORM_API_KEY", `ann=${"x".repeat(32)},bob=${"y".repeat(32)}`, []],
    ["PLATFORM_API_KEY", `ann=${"x".repeat(32)},bob=${"y".repeat(31)}`, [tooShort]],
    ["UPSTREAM_API_KEY", "x".repeat(32), []],
    ["UPSTREAM_API_KEY", "x".repeat(31), [tooShort]],
  ])("%s = %s", (setting, value, problems) => {
    const upstream = { UPSTREAM_URL: "https://api.example.com", UPSTREAM_API_KEY: strong("upstream") };
    const expected = problems.map((problem) => `${setting} ${problem}`);
    expect(faultsOf(deployedSettings, { ...upstream, [setting]: value })).toEqual(expected);
  });

  it.each<SettingName>(["UPSTREAM_URL", "MANAGEMENT_URL", "JWKS_URL", "PUBLIC_URL"])("%s is https", (setting) => {
    const besides = { UPSTREAM_API_KEY: strong("upstream"), JWT_ISSUER: "i", JWT_AUDIENCE: "a" };
    expect(faultsOf(deployedSettings, { ...besides, [setting]: "https://host.example.com" })).toEqual([]);
    for (const clear of ["http://host.example.com", "HTTP://host.example.com"]) {
      expect(faultsOf(deployedSettings, { ...besides, [setting]: clear })).toEqual([`${setting} must be an https URL`]);
    }
  });

  it("has no plan for developers", () => {
    for (const SESSION_PLAN of ["anonymous", "unlimited", ""]) {
      expect(faultsOf(deployedSettings, { SESSION_PLAN })).toEqual([]);
    }
    expect(deployed({ SESSION_PLAN: "" }).sessionPlan).toBe("anonymous");
    const fault = "SESSION_PLAN the plan developer is there only with LOCAL = true";
    expect(faultsOf(deployedSettings, { SESSION_PLAN: "developer" })).toEqual([fault]);
  });

  it("names what cannot be read, what is missing and what is weak together, each once", () => {
    const change = { BUDGET_DAY_USD: "much", ADMIN_TOKEN: 42, JWKS_URL: "https://id.example.com/keys" };
    expect(faultsOf(deployedSettings, { ...change, JWT_ISSUER: "i", APP_SECRET: "short" })).toEqual([
      expect.stringMatching(/^ADMIN_TOKEN .*expected string/),
      expect.stringMatching(/^BUDGET_DAY_USD expected an amount/),
      "JWT_AUDIENCE is required with JWKS_URL",
      "APP_SECRET must be at least 32 bytes",
    ]);
  });

  it("says all that is missing or weak at once", () => {
    expect(faultsOf({}, { APP_SECRET: "short" })).toEqual([
      "SIGNING_SECRET is required",
      "ADMIN_TOKEN is required",
      "PLATFORM_API_KEY is required",
      "APP_SECRET must be at least 32 bytes",
    ]);
  });
});
