// The entry of a deployment in front of a real service: deployed with the one wrangler.toml, and served with neither the platform
// nor what it is called by.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { readWrangler } from "../../src/cli/wrangler.ts";
import { Server } from "../support/serve.ts";
import { type Entry, todaysBuild } from "../support/serve-bundle.ts";
import { testSettings } from "../support/settings.ts";
import { ScriptedUpstream, upstreamKey } from "./support/scripted-upstream.ts";

const model = "gpt-oss-120b";

describe("one wrangler.toml", () => {
  // Its list of bindings is what it logs.
  afterEach(() => void vi.unstubAllEnvs());
  const bound = async (entry: Entry) => {
    vi.stubEnv("WRANGLER_LOG", "log");
    const { status, output } = await readWrangler(["deploy", `src/${entry}.ts`, "--dry-run", "--minify"]);
    expect(status, output).toBe(0);
    return [...output.matchAll(/^env\.(\w+) .*?(Durable Object|KV Namespace|R2 Bucket|Rate Limit)/gm)].map(
      ([, name]) => name,
    );
  };

  it("deploys both entries, with the same bindings", async () => {
    const whole = await bound("index");
    expect(whole).toHaveLength(10);
    expect(await bound("gateway-only")).toEqual(whole);
  });
});

describe("the gateway alone", () => {
  const upstream = new ScriptedUpstream();
  let server: Server;
  let token: string;
  beforeAll(async () => {
    await upstream.listen();
    const settings = { UPSTREAM_URL: upstream.url, UPSTREAM_API_KEY: upstreamKey, PLATFORM_API_KEY: "none" };
    server = await Server.start({ build: await todaysBuild("gateway-only"), settings });
    const minted = await asked("POST", "/tokens", testSettings.APP_SECRET, { user: "ada", plan: "unlimited" });
    ({ token } = (await minted.json()) as { token: string });
  });
  afterAll(async () => {
    await server.stop();
    await upstream.close();
  });

  function asked(method: string, path: string, key?: string, body?: object): Promise<Response> {
    const headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    return fetch(server.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  }

  it("relays a job to the service and says how it ended", async () => {
    const run = await asked("POST", `/v2/${model}/run`, token, { input: { prompt: "a haiku" } });
    expect(run.status).toBe(200);
    const { id } = (await run.json()) as { id: string };
    upstream.jobOf(id).state = { status: "COMPLETED", output: { text: "done" } };
    const status = await asked("GET", `/v2/${model}/status/${id}`, token);
    expect(await status.json()).toMatchObject({ id, status: "COMPLETED" });
  });

  it("has the same routes but the platform's, and a document of them", async () => {
    const refused = await asked("GET", `/platform/v2/${model}/health`, testSettings.PLATFORM_API_KEY);
    expect([refused.status, await refused.json()]).toMatchObject([404, { code: "NOT_FOUND" }]);
    const { paths } = (await (await asked("GET", "/openapi.json")).json()) as { paths: Record<string, unknown> };
    expect(Object.keys(paths)).toContain("/v2/{model}/run");
    expect(Object.keys(paths).filter((path) => path.startsWith("/platform"))).toEqual([]);
    expect((await asked("GET", "/models")).status).toBe(200);
    expect((await asked("GET", "/usage", token)).status).toBe(200);
    expect((await asked("GET", "/v1/endpoints", testSettings.ADMIN_TOKEN)).status).toBe(501);
  });

  it("carries nothing of the platform or the samples", async () => {
    const said = async (entry: Entry) => {
      const code = readFileSync(join((await todaysBuild(entry)).folder, "index.js"), "utf8");
      return ["EndpointQueue", "/platform/v2/:endpoint", "job-take", "volumeInGb"].filter((text) =>
        code.includes(text),
      );
    };
    expect(await said("index")).toEqual(["EndpointQueue", "/platform/v2/:endpoint", "job-take", "volumeInGb"]);
    expect(await said("gateway-only")).toEqual(["EndpointQueue"]);
  });

  it("answers nothing without a service, and the log says which setting is missing", async () => {
    const alone = await Server.start({ build: await todaysBuild("gateway-only") });
    const answer = await fetch(`${alone.url}/healthz`);
    expect([answer.status, await answer.json()]).toMatchObject([500, { code: "MISCONFIGURED" }]);
    expect(alone.log.join("\n")).toContain("UPSTREAM_URL");
    await alone.stop();
  });
});
