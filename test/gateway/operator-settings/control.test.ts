// CONTROL and the operator's routes to it: revocations, model switches, plans.
import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { isolate, refusalOf, send } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { testSettings } from "../../support/settings.ts";

const key = testSettings.ADMIN_TOKEN;
const model = "gpt-oss-120b";
const put = (model: string, body: unknown) => send(isolate(), "PUT", `/admin/models/${model}`, { key, body });
const get = (model: string) => send(isolate(), "GET", `/admin/models${model && `/${model}`}`, { key });
const revoke = (user: string, body?: unknown) => send(isolate(), "POST", `/admin/users/${user}/revoke`, { key, body });
const stub = () => env.CONTROL.getByName("control");
const plan = { rules: [{ unit: "jobs" as const, limit: 2 }] };

afterEach(emptyStorage);

describe("CONTROL that cannot be reached", () => {
  const away = { getByName: () => new Proxy({}, { get: () => () => Promise.reject(new Error("lost")) }) };
  const asked = (method: string, path: string, body?: unknown) =>
    send(isolate({ CONTROL: away }), method, path, { key, body });

  it.each([
    ["a revocation", "POST", "/admin/users/user:ada/revoke", undefined],
    ["a model's switch", "PUT", `/admin/models/${model}`, { enabled: false }],
    ["a plan", "PUT", "/admin/plans/pro", plan],
    ["a ceiling", "PUT", "/admin/budget", { dayUsd: 1, monthUsd: null }],
  ])("is no fault of ours: %s is answered with 503, and can be said again", async (_what, method, path, body) => {
    const answer = await asked(method, path, body);
    expect(answer.status).toBe(503);
    expect(answer.headers.get("Retry-After")).toMatch(/^[13]$/);
  });
});

describe("CONTROL", () => {
  it("tells what changed after a version, and nothing where nothing did", async () => {
    const control = stub();
    expect(await control.snapshot(0)).toBeUndefined();
    await control.setPlan("pro", plan);
    await control.revokeUser("user:ada", 100);
    const { version, ...all } = (await control.snapshot(0)) ?? { version: 0 };
    expect(all).toMatchObject({ plans: [{ name: "pro", value: plan }], users: [{ name: "user:ada", value: 100 }] });
    expect(await control.snapshot(version)).toBeUndefined();
    await control.setModel("poet", { enabled: false, passthrough: false });
    expect(await control.snapshot(version)).toEqual({
      restarted: false,
      version: version + 1,
      plans: [],
      users: [],
      tokens: [],
      ceilings: [],
      models: [{ name: "poet", value: { enabled: false, passthrough: false } }],
    });
  });

  it("remembers across its own end", async () => {
    await stub().setPlan("pro", plan);
    await evictDurableObject(stub());
    expect(await stub().snapshot(0)).toMatchObject({ version: 1, plans: [{ name: "pro", value: plan }] });
  });

  it("never moves a user's revocation back", async () => {
    await stub().revokeUser("user:ada", 100);
    await stub().revokeUser("user:ada", 50);
    expect((await stub().snapshot(0))?.users).toEqual([{ name: "user:ada", value: 100 }]);
  });

  it("forgets a token's revocation when the token is over, and a user's never", async () => {
    await stub().revokeUser("user:ada", 1);
    await stub().revokeToken("short", 1_000, 0);
    await stub().revokeToken("long", 9_000, 2_000);
    expect(await stub().snapshot(0)).toMatchObject({
      users: [{ name: "user:ada", value: 1 }],
      tokens: [{ name: "long", value: 9_000 }],
    });
  });

  it("gives everything to an isolate that knows a later version than there is", async () => {
    await stub().setPlan("pro", plan);
    expect(await stub().snapshot(99)).toMatchObject({
      restarted: true,
      version: 1,
      plans: [{ name: "pro" }],
    });
  });
});

describe("the operator", () => {
  it("switches a model, opens an endpoint, and reads how it stands", async () => {
    expect(await refusalOf(await get("my-endpoint"))).toMatchObject({ status: 404, code: "MODEL_NOT_FOUND" });
    const opened = { model: "my-endpoint", enabled: true, passthrough: true, maxUsd: 0.05 };
    expect(await (await put("my-endpoint", { passthrough: true, maxUsd: 0.05 })).json()).toEqual(opened);
    expect(await (await get("my-endpoint")).json()).toEqual(opened);
    await put("my-endpoint", { enabled: false });
    expect(await (await get("my-endpoint")).json()).toEqual({
      model: "my-endpoint",
      enabled: false,
      passthrough: false,
    });
  });

  it("lists how each model is switched, and names them all for one that nobody knows", async () => {
    await put(model, { enabled: false });
    await put("my-endpoint", { passthrough: true, maxUsd: 0.05 });
    const { models } = await (await get("")).json<{ models: { model: string }[] }>();
    expect(models).toContainEqual({ model, enabled: false, passthrough: false });
    expect(models).toContainEqual({ model: "qwen3-32b-awq", enabled: true, passthrough: false });
    expect(models.at(-1)).toEqual({ model: "my-endpoint", enabled: true, passthrough: true, maxUsd: 0.05 });
    const names = models.map(({ model }) => model).join(", ");
    expect(await refusalOf(await get("my-endpont"))).toMatchObject({
      status: 404,
      code: "MODEL_NOT_FOUND",
      detail: `model: "my-endpont" is not known; there are ${names}`,
    });
  });

  it.each<[string, string, unknown]>([
    ["a passthrough without a price", model, { passthrough: true }],
    ["a price below nothing", model, { maxUsd: -1 }],
    ["a word for a switch", model, { enabled: "no" }],
    ["an unknown key", model, { disabled: true }],
    ["a model that is a path", `..%2F${model}`, {}],
    ["a misspelt model", "gpt-oss-12b", { enabled: false }],
    ["a model of 10 KB", "x".repeat(10_240), {}],
  ])("is refused %s", async (_, named, body) => {
    expect((await put(model, {})).status).toBe(200);
    expect(await refusalOf(await put(named, body))).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
  });

  it("revokes a user by the app's id or as an owner, with or without a body", async () => {
    expect(await (await revoke("ada")).json()).toEqual({ user: "user:ada", revokedAt: expect.any(String) });
    for (const [given, owner] of [
      ["user:ada", "user:ada"],
      [`anon:${"0".repeat(32)}`, `anon:${"0".repeat(32)}`],
      ["a%20b%2Fc", "user:a b/c"],
    ] as const) {
      expect(await (await revoke(given, {})).json()).toMatchObject({ user: owner });
    }
  });

  it("revokes one token until it would have ended", async () => {
    const body = { tokenId: "t-1", expiresAt: "2100-01-01T00:00:00Z" };
    expect(await (await revoke("ada", body)).json()).toMatchObject({ user: "user:ada", tokenId: "t-1" });
    expect(await stub().snapshot(0)).toMatchObject({
      users: [],
      tokens: [{ name: "t-1", value: Date.parse("2100-01-01") }],
    });
  });

  it.each<[string, string, unknown]>([
    ["a user with a control character", "a%00b", {}],
    ["an empty token id", "ada", { tokenId: "" }],
    ["a moment that is none", "ada", { tokenId: "t", expiresAt: "tomorrow" }],
    ["a misspelt key, which would revoke everything", "ada", { jti: "t" }],
  ])("does not revoke %s", async (_, user, body) => {
    expect((await revoke("ada", { tokenId: "t" })).status).toBe(200);
    expect(await refusalOf(await revoke(user, body))).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
  });

  it.each([
    ["POST", "/admin/users/ada/revoke", undefined],
    ["PUT", `/admin/models/${model}`, {}],
    ["PUT", `/admin/models/${model}/`, {}],
    ["GET", `/admin/models/${model}`, undefined],
    ["GET", "/admin/models", undefined],
    ["GET", "/admin/plans", undefined],
    ["GET", "/admin/nothing", undefined],
  ])("is asked for at %s %s", async (method, path, body) => {
    for (const wrong of [undefined, `${key}x`, key.slice(1), testSettings.APP_SECRET, testSettings.PLATFORM_API_KEY]) {
      const refused = await send(isolate(), method, path, { ...(wrong && { key: wrong }), body });
      expect(await refusalOf(refused)).toMatchObject({ status: 401, code: "UNAUTHORIZED" });
    }
    expect((await send(isolate(), method, path, { key, body })).status).not.toBe(401);
  });
});
