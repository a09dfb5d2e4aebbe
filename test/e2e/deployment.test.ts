// `npm run deploy`, branch by branch: what it asks, what it tells wrangler, what it keeps, and what a failed step says.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { copyConfig, deployed } from "./support/wrangler.ts";

const all = ["SIGNING_SECRET", "APP_SECRET", "ADMIN_TOKEN", "PLATFORM_API_KEY", "UPSTREAM_API_KEY", "TURNSTILE_SECRET"];
const url = "https://jobs.example.com";
const upstreamKey = "key-of-the-real-service-0123456789abcdef";
const inFront = (text: string) => text.replace('UPSTREAM_URL = ""', `UPSTREAM_URL = "${url}"`);
const copyName = "wrangler.without-r2.toml";

describe("a first deployment in a terminal", () => {
  it("may be a demo, which asks for nothing that only an operator knows", async () => {
    const { done, asked, secrets, commands, said, folder } = await deployed({ answers: ["1", "", "", "", ""] });
    expect(done).toBe(true);
    expect(asked.map((question) => question.split(" ")[0])).toEqual(["1", ...all.slice(0, 4)]);
    expect(Object.keys(secrets ?? {})).toEqual(all);
    expect(secrets).toMatchObject({ UPSTREAM_API_KEY: "none", TURNSTILE_SECRET: "none" });
    for (const name of all.slice(0, 4)) expect(said).toContain(`${name}=${secrets?.[name]}   keep it`);
    expect(commands.at(-2)).toMatch(/^deploy --minify --secrets-file \S+$/);
    expect(commands.at(-1)).toBe("bucket rule");
    expect(said).toContain("It stands in front of the embedded platform: sample models, nothing real is made.");
    expect(said).toContain("https://sluice.example.workers.dev/#token=");
    expect(said).toContain("npm run doctor -- https://sluice.example.workers.dev");
    expect(readFileSync(join(folder, "wrangler.toml"), "utf8")).toContain('UPSTREAM_URL = ""');
  });

  it("may stand in front of a real service: the answer is kept, and the gateway stands alone", async () => {
    const answers = ["2", "http://jobs.example.com", `${url}/v2`, "", "", "", "short", "", upstreamKey];
    const { done, asked, secrets, commands, said, folder } = await deployed({ answers });
    expect(done).toBe(true);
    expect(asked.map((question) => question.split(/[ ,]/)[0])).toEqual([
      ...["1", "UPSTREAM_URL", "UPSTREAM_URL"],
      ...["SIGNING_SECRET", "APP_SECRET", "ADMIN_TOKEN", "UPSTREAM_API_KEY", "UPSTREAM_API_KEY", "UPSTREAM_API_KEY"],
    ]);
    expect(said).toContain("UPSTREAM_URL must be an https URL");
    expect(said).toContain("UPSTREAM_API_KEY must be at least 32 bytes");
    expect(said).toContain("UPSTREAM_API_KEY is required with UPSTREAM_URL");
    expect(secrets).toMatchObject({ UPSTREAM_API_KEY: upstreamKey });
    expect(secrets?.["PLATFORM_API_KEY"]).toMatch(/^[\w-]{43}$/);
    expect(commands.at(-2)).toMatch(/^deploy src\/gateway-only\.ts --minify --secrets-file /);
    expect(said).toContain(`It stands in front of ${url}/v2.`);
    expect(readFileSync(join(folder, "wrangler.toml"), "utf8")).toContain(`UPSTREAM_URL = "${url}/v2"\n`);
  });

  it("waits for R2, names the page, and goes on without uploads if it is told so", async () => {
    const account = { r2: "not enabled" as const };
    const folder = copyConfig(inFront);
    const answers = ["", "", "", upstreamKey, "", "without"];
    const { done, said, commands, config } = await deployed({ account, folder, answers });
    expect(done).toBe(true);
    expect(said).toContain("https://dash.cloudflare.com/?to=/:account/r2/overview");
    expect(commands.filter((command) => command === "r2 bucket list")).toHaveLength(2);
    expect(commands.at(-1)).toContain(`--config ${copyName}`);
    expect(config).not.toMatch(/r2_buckets|"MEDIA"/);
    expect(config).toContain("USER_METER");
    expect(existsSync(join(folder, copyName))).toBe(false);
  });

  it("goes on with uploads once R2 is enabled, and a demo only then", async () => {
    const account: { r2: "not enabled" | "enabled" } = { r2: "not enabled" };
    let times = 0;
    const onAsk = (question: string) => {
      if (question.startsWith("Enter: ask again") && ++times === 2) account.r2 = "enabled";
    };
    const { done, commands } = await deployed({ account, answers: ["1", "", "", "", "", "without", ""], onAsk });
    expect([done, times, commands.at(-1)]).toEqual([true, 2, "bucket rule"]);
  });

  it("asks which account, where there are more", async () => {
    const accounts = ["one", "two"].map((name) => ({ id: `id-of-${name}`, name }));
    const { done, env } = await deployed({ account: { accounts }, answers: ["3", "2", "1", "", "", "", ""] });
    expect([done, env["CLOUDFLARE_ACCOUNT_ID"]]).toEqual([true, "id-of-two"]);
  });
});

describe("a later deployment", () => {
  it.each([
    ["in a terminal", []],
    ["without one", undefined],
  ])("asks and makes nothing twice, %s", async (_, answers) => {
    const account = { secrets: [...all] };
    const scene = { account, folder: copyConfig(inFront), ...(answers && { answers }) };
    const { done, asked, secrets, commands, said } = await deployed(scene);
    expect([done, asked, secrets]).toEqual([true, [], undefined]);
    expect(commands).toEqual([
      ...["whoami --json", "secret list --format json", "r2 bucket list"],
      "deploy src/gateway-only.ts --minify",
      "bucket rule",
    ]);
    expect(said).toContain("With APP_SECRET set, npm run deploy prints an address with a token.");
    const known = await deployed({ ...scene, env: { APP_SECRET: "a".repeat(40) } });
    expect(known.said).toContain("/#token=of-40-letters");
  });

  it("asks for what a newer version needs", async () => {
    const account = { secrets: all.filter((name) => name !== "ADMIN_TOKEN") };
    const { asked, secrets } = await deployed({ account, answers: [""] });
    expect(asked).toHaveLength(1);
    expect(Object.keys(secrets ?? {})).toEqual(["ADMIN_TOKEN"]);
  });
});

describe("without a terminal", () => {
  const env = { UPSTREAM_URL: url, UPSTREAM_API_KEY: upstreamKey, ADMIN_TOKEN: "operator-".repeat(5) };

  it("takes the secrets from the environment, makes the random ones, and shows none", async () => {
    const { done, secrets, said, folder } = await deployed({ env });
    expect(done).toBe(true);
    expect(secrets).toMatchObject({
      UPSTREAM_API_KEY: upstreamKey,
      ADMIN_TOKEN: env.ADMIN_TOKEN,
      TURNSTILE_SECRET: "none",
    });
    expect(said).toContain("Made at random, and shown nowhere: SIGNING_SECRET, APP_SECRET, PLATFORM_API_KEY.");
    for (const name of all.slice(0, 5)) expect(said).not.toContain(secrets?.[name]);
    expect(readFileSync(join(folder, "wrangler.toml"), "utf8")).toContain(`UPSTREAM_URL = "${url}"\n`);
  });

  it("is a demo where nothing says otherwise", async () => {
    const { done, commands, secrets } = await deployed({});
    expect(done).toBe(true);
    expect(Object.keys(secrets ?? {})).toEqual(all);
    expect(commands.at(-2)).toMatch(/^deploy --minify /);
  });

  it.each([
    ["no key of the service", { ...env, UPSTREAM_API_KEY: "" }, "UPSTREAM_API_KEY is required with UPSTREAM_URL"],
    ["a key that is too short", { ...env, UPSTREAM_API_KEY: "short" }, "UPSTREAM_API_KEY must be at least 32 bytes"],
    [
      "a service in the clear",
      { ...env, UPSTREAM_URL: "http://jobs.example.com" },
      "UPSTREAM_URL must be an https URL",
    ],
    [
      "an operator's token that is too short",
      { ...env, ADMIN_TOKEN: "short" },
      "ADMIN_TOKEN must be at least 32 bytes",
    ],
  ])("stops before anything is made: %s", async (_, wrong, problem) => {
    const { done, stopped, commands, folder } = await deployed({ env: wrong });
    expect(done).toBe(false);
    expect(stopped).toContain(problem);
    expect(stopped).toContain("Nothing was deployed.");
    expect(commands).toEqual(["whoami --json", "secret list --format json"]);
    expect(readFileSync(join(folder, "wrangler.toml"), "utf8")).toContain('UPSTREAM_URL = ""');
  });

  it("goes on without uploads where R2 is not enabled, and says how to get them", async () => {
    const { done, said, config } = await deployed({ env, account: { r2: "not enabled" } });
    expect(done).toBe(true);
    expect(said).toContain("https://dash.cloudflare.com/?to=/:account/r2/overview");
    expect(said).toContain("goes on without uploads");
    expect(config).not.toContain("r2_buckets");
  });

  it("stops a demo there: its pictures need the bucket", async () => {
    const { done, stopped, secrets } = await deployed({ account: { r2: "not enabled" } });
    expect([done, secrets]).toEqual([false, undefined]);
    expect(stopped).toContain("The demo keeps its pictures there.");
  });

  it("stops where R2 is forbidden to the token, and needs none with --no-uploads", async () => {
    const account = { r2: "forbidden" as const };
    expect((await deployed({ env, account })).stopped).toMatch(/permission to edit R2.*--no-uploads/);
    const without = await deployed({ env, account, asked: { uploads: false } });
    expect([without.done, without.commands.includes("r2 bucket list")]).toEqual([true, false]);
  });
});

describe("a failed step says what to do", () => {
  it("not logged in", async () => {
    const { stopped, commands } = await deployed({ account: { loggedIn: false } });
    expect(stopped).toMatch(/You are not logged in\.\nRun npx wrangler login\./);
    expect(commands).toEqual(["whoami --json"]);
  });

  it("more accounts than one, and nobody to ask", async () => {
    const accounts = ["one", "two"].map((name) => ({ id: `id-of-${name}`, name }));
    expect((await deployed({ account: { accounts } })).stopped).toMatch(/two {2}id-of-two\nSet CLOUDFLARE_ACCOUNT_ID/);
    const named = await deployed({ account: { accounts }, env: { CLOUDFLARE_ACCOUNT_ID: "id-of-two" } });
    expect(named.done).toBe(true);
    const folder = copyConfig((text) => `account_id = "id-of-two"\n${text}`);
    expect((await deployed({ account: { accounts }, folder })).done).toBe(true);
  });

  it("wrangler did not deploy", async () => {
    const folder = copyConfig(inFront);
    const env = { UPSTREAM_API_KEY: upstreamKey };
    const { stopped, said } = await deployed({ folder, env, account: { fails: true, r2: "not enabled" } });
    expect(stopped).toContain("npm run doctor");
    expect(said).not.toContain("#token=");
    expect(existsSync(join(folder, copyName))).toBe(false);
  });
});
