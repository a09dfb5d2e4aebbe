// `/tokens`: what a backend may mint for its users, and what the token is then good for.
import { exports } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { ask, isolate, principalOf, refusalOf, send } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { decodePart } from "../../support/provider.ts";
import { testSettings } from "../../support/settings.ts";

const key = testSettings.APP_SECRET;
const [painter, poet] = ["black-forest-labs-flux-1-schnell", "gpt-oss-120b"];
const mint = (body: unknown, within = isolate()) => send(within, "POST", "/tokens", { key, body });
const tokenFor = async (body: unknown) => {
  const response = await mint(body);
  expect(response.status).toBe(200);
  return (await response.json<{ token: string }>()).token;
};

afterEach(emptyStorage);

describe("a minted token", () => {
  it("says whose it is, for an hour, on the default plan", async () => {
    const before = Date.now();
    const issued = await (await mint({ user: "ada" })).json<{ token: string; expiresAt: string }>();
    expect(issued).toEqual({ token: expect.any(String), user: "ada", plan: "free", expiresAt: expect.any(String) });
    expect(Math.abs(Date.parse(issued.expiresAt) - before - 3_600_000)).toBeLessThan(2_000);
    const [head, claims] = issued.token.split(".").slice(0, 2).map(decodePart);
    expect(head).toEqual({ alg: "HS256", typ: "sluice-token+jwt" });
    expect(claims).toMatchObject({ iss: "sluice", sub: "ada", jti: expect.any(String), iat: expect.any(Number) });
  });

  it("carries everything that narrows it to the principal", async () => {
    const rules = [
      { unit: "requests", limit: 5, per: "minute" },
      { unit: "jobs", limit: 2, models: [painter] },
      { unit: "usd", limit: 0.5, per: "day" },
    ];
    const grants = { plan: "pro", models: [painter], operations: ["run", "status"], rules };
    const token = await tokenFor({ user: "ada", ...grants, maxCostUsd: 0.1, ttlSeconds: 60 });
    const principal = await principalOf(await ask(isolate(), token, `/v2/${painter}/status/job-1`));
    expect(principal).toMatchObject({ kind: "user", owner: "user:ada", payer: "user:ada", ...grants });
    expect(principal.maxCostMicroUsd).toBe(100_000);
    expect(principal).not.toHaveProperty("maxCostUsd");
  });

  it("is for its own models and operations", async () => {
    const token = await tokenFor({ user: "ada", models: [painter], operations: ["status"] });
    const at = async (path: string, method = "GET") => {
      const response = await ask(isolate(), token, path, method);
      return response.ok ? 200 : refusalOf(response);
    };
    expect(await at(`/v2/${painter}/status/job-1`)).toBe(200);
    expect(await at(`/v2/${poet}/status/job-1`)).toMatchObject({ status: 403, code: "MODEL_FORBIDDEN" });
    expect(await at(`/v2/${painter}/run`, "POST")).toMatchObject({ status: 403, code: "OPERATION_FORBIDDEN" });
  });

  it.each<[string, object]>([
    ["no user", {}],
    ["an empty user", { user: "" }],
    ["a user with a control character", { user: "a\u0000b" }],
    ["half a character for a user", { user: "a\ud800" }],
    ["a user that is too long", { user: "x".repeat(257) }],
    ["a misspelt limit", { user: "ada", maxCost: 1 }],
    ["a limit below nothing", { user: "ada", maxCostUsd: -1 }],
    ["more than a day", { user: "ada", ttlSeconds: 86_401 }],
    ["no time at all", { user: "ada", ttlSeconds: 0 }],
    ["an operation that there is not", { user: "ada", operations: ["fly"] }],
    ["a list of no operations", { user: "ada", operations: [] }],
    ["a model that is a path", { user: "ada", models: ["../x"] }],
    ["a plan that is no name", { user: "ada", plan: "a b" }],
    ["concurrent jobs per hour", { user: "ada", rules: [{ unit: "jobs", limit: 1, per: "hour" }] }],
    ["requests per nothing", { user: "ada", rules: [{ unit: "requests", limit: 1 }] }],
    ["half a request", { user: "ada", rules: [{ unit: "requests", limit: 0.5, per: "day" }] }],
    ["an unknown unit", { user: "ada", rules: [{ unit: "wishes", limit: 3 }] }],
  ])("is not minted with %s", async (_, body) => {
    expect(await refusalOf(await mint(body))).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
  });

  it.each<[string, object, RegExp]>([
    ["a plan", { plan: "pr0" }, /^plan: "pr0" is not known; there are anonymous, free, pro, unlimited, developer$/],
    ["a model", { models: [painter, "poet"] }, /^models: "poet" is not known; there are .*gpt-oss-120b/],
    ["a rule's model", { rules: [{ unit: "jobs", limit: 1, models: ["poet"] }] }, /^rules: "poet" .* image, .*gpt-oss/],
  ])("is not minted with %s that nobody knows: the answer says what there is", async (_, grants, detail) => {
    const refusal = await refusalOf(await mint({ user: "ada", ...grants }));
    expect(refusal).toEqual({ status: 400, code: "INVALID_REQUEST", detail: expect.stringMatching(detail) });
  });

  it("may name what the operator made a moment ago in another isolate", async () => {
    const within = isolate();
    const asked = { user: "ada", plan: "team", models: ["my-endpoint"] };
    expect((await mint(asked, within)).status).toBe(400);
    const admin = (path: string, body: object) =>
      send(isolate(), "PUT", `/admin${path}`, { key: testSettings.ADMIN_TOKEN, body });
    await admin("/plans/team", { rules: [] });
    await admin("/models/my-endpoint", { passthrough: true, maxUsd: 1 });
    expect((await mint(asked, within)).status).toBe(200);
  });

  it("of what is built in needs no CONTROL", async () => {
    const away = isolate({ CONTROL: { getByName: () => ({ snapshot: () => Promise.reject(new Error("away")) }) } });
    expect((await mint({ user: "ada", plan: "pro", models: [painter] }, away)).status).toBe(200);
    expect(await refusalOf(await mint({ user: "ada", plan: "team" }, away))).toMatchObject({ status: 503 });
  });

  it("has the plan for developers on a developer's machine alone", async () => {
    const asked = { user: "ada", plan: "developer" };
    expect((await mint(asked)).status).toBe(200);
    const { code, detail } = await refusalOf(await mint(asked, isolate({ LOCAL: "" })));
    expect(code).toBe("INVALID_REQUEST");
    expect(detail).toBe('plan: "developer" is not known; there are anonymous, free, pro, unlimited');
  });

  it("is not minted where it would be too long to be sent", async () => {
    const models = Array<string>(100).fill(painter);
    const rules = [...Array(5).keys()].map((limit) => ({ unit: "jobs", limit, models }));
    const refusal = await refusalOf(await mint({ user: "ada", rules }));
    expect(refusal).toMatchObject({ status: 400, detail: expect.stringMatching(/too long/) });
  });
});

describe("the app's backend", () => {
  it.each([
    ["POST", "/tokens"],
    ["GET", "/tokens/webhook-secret"],
  ])("%s %s opens with its secret alone, and is not there without one", async (method, path) => {
    const call = (within: Env, given?: string) =>
      send(within, method, path, { ...(given && { key: given }), ...(method === "POST" && { body: { user: "ada" } }) });
    expect((await call(isolate(), key)).status).toBe(200);
    const minted = await tokenFor({ user: "ada" });
    for (const wrong of [undefined, `${key}x`, key.slice(0, -1), testSettings.ADMIN_TOKEN, minted]) {
      expect(await refusalOf(await call(isolate(), wrong))).toMatchObject({ status: 401, code: "UNAUTHORIZED" });
    }
    expect(await refusalOf(await call(isolate({ APP_SECRET: "none" }), "none"))).toMatchObject({ code: "NOT_FOUND" });
  });

  it("reads the secret that webhooks are signed with: the newest of a rotation", async () => {
    const read = async (secret: string) => {
      const response = await send(isolate({ SIGNING_SECRET: secret }), "GET", "/tokens/webhook-secret", { key });
      return (await response.json<{ secret: string }>()).secret;
    };
    const [now, rotated, before] = await Promise.all(["new,old", "new", "old"].map(read));
    expect(now).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(now).toBe(rotated);
    expect(now).not.toBe(before);
    expect(now).toBe("whsec_yt49FOJr8syUZIz72Lo2auvZH9zEgMLDDZd/kHWzqGI=");
  });

  it("finds its routes in the OpenAPI document", async () => {
    const { paths } = await (await exports.default.fetch("https://gateway.example.com/openapi.json")).json<{
      paths: Record<string, Record<string, object>>;
    }>();
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(["/sessions", "/tokens", "/tokens/webhook-secret"]));
    expect(paths["/tokens"]?.["post"]).toHaveProperty("requestBody");
  });
});
