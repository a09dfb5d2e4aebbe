// An isolate that has never read CONTROL: it starts from KV's copy, whatever CONTROL does, and no copy but CONTROL's own counts.
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { app } from "../../../src/app.ts";
import { snapshotKey } from "../../../src/gateway/operator-settings/control-snapshot.ts";
import { isolate, refusalOf, send } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { testSettings } from "../../support/settings.ts";

const key = testSettings.ADMIN_TOKEN;
const model = "gpt-oss-120b";
const control = () => env.CONTROL.getByName("control");
const copy = () => env.IMAGES.get<Record<string, unknown>>(snapshotKey(), "json");
const revoke = (user: string) => send(isolate(), "POST", `/admin/users/${user}/revoke`, { key });
const body = { input: { prompt: "a haiku" } };

async function tokenOf(user: string): Promise<string> {
  const minted = await send(isolate(), "POST", "/tokens", { key: testSettings.APP_SECRET, body: { user } });
  return (await minted.json<{ token: string }>()).token;
}

/** CONTROL as an isolate meets it that lies far from it, or cannot reach it. */
function controlThat(answer: () => Promise<void>) {
  const snapshot = async (since: number) => {
    await answer();
    return env.CONTROL.getByName("control").snapshot(since);
  };
  return { CONTROL: { getByName: () => ({ snapshot }) } };
}
const lost = controlThat(() => Promise.reject(new Error("lost")));
const imagesThat = (get: () => Promise<unknown>) => ({
  IMAGES: new Proxy(env.IMAGES, { get: (kv, name) => (name === "get" ? get : Reflect.get(kv, name).bind(kv)) }),
});

beforeEach(() => {
  vi.spyOn(console, "error").mockReturnValue();
  vi.spyOn(console, "warn").mockReturnValue();
});
afterEach(emptyStorage);

describe("a cold isolate", () => {
  it("answers a run and a status while CONTROL does not answer at all", async () => {
    const token = await tokenOf("ada");
    await control().setPlan("pro", { rules: [] });
    const { id } = await (await send(isolate(), "POST", `/v2/${model}/run`, { key: token, body })).json<{
      id: string;
    }>();
    const held = Promise.withResolvers<void>();
    for (const [method, path] of [
      ["GET", `/v2/${model}/status/${id}`],
      ["POST", `/v2/${model}/run`],
    ] as const) {
      const ctx = createExecutionContext();
      const asked = new Request(`https://gateway.example.com${path}`, {
        method,
        headers: { Authorization: `Bearer ${token}` },
        ...(method === "POST" && { body: JSON.stringify(body) }),
      });
      const answered = await app.fetch(asked, isolate(controlThat(() => held.promise)), ctx);
      expect(answered.status).toBe(200);
      await answered.text();
      held.resolve();
      await waitOnExecutionContext(ctx);
    }
  });

  it("knows what was revoked and switched, without CONTROL", async () => {
    const [ada, bob] = [await tokenOf("ada"), await tokenOf("bob")];
    expect((await revoke("ada")).status).toBe(200);
    await send(isolate(), "PUT", `/admin/models/${model}`, { key, body: { enabled: false } });
    expect((await send(isolate(lost), "GET", "/usage", { key: bob })).status).toBe(200);
    expect(await refusalOf(await send(isolate(lost), "GET", "/usage", { key: ada }))).toMatchObject({
      status: 401,
      code: "TOKEN_REVOKED",
    });
    expect(await refusalOf(await send(isolate(lost), "POST", `/v2/${model}/run`, { key: bob, body }))).toMatchObject({
      code: "MODEL_DISABLED",
    });
  });

  it("submits nothing for a revoked user, however old its copy is", async () => {
    const token = await tokenOf("ada");
    await control().setPlan("pro", { rules: [] });
    const old = await env.IMAGES.get(snapshotKey());
    expect((await revoke("ada")).status).toBe(200);
    await env.IMAGES.put(snapshotKey(), old ?? "");
    const refused = await send(isolate(lost), "POST", `/v2/${model}/run`, { key: token, body });
    expect(await refusalOf(refused)).toMatchObject({ status: 401, code: "TOKEN_REVOKED" });
  });

  it.each<[string, (snapshot: Record<string, unknown>) => string]>([
    ["cut off", (snapshot) => JSON.stringify(snapshot).slice(0, -1)],
    ["of a later format", (snapshot) => JSON.stringify({ ...snapshot, format: 2 })],
    ["without its revocations", ({ users: _, ...rest }) => JSON.stringify(rest)],
    ["with a rule that nobody knows", (snapshot) => JSON.stringify({ ...snapshot, plans: [planWith("wishes")] })],
  ])("takes a copy for none that is %s", async (_what, spoil) => {
    const token = await tokenOf("ada");
    await control().setPlan("pro", { rules: [] });
    const good = (await copy()) ?? {};
    await env.IMAGES.put(snapshotKey(), JSON.stringify(good));
    expect((await send(isolate(lost), "GET", "/usage", { key: token })).status).toBe(200);
    await env.IMAGES.put(snapshotKey(), spoil(good));
    expect(await refusalOf(await send(isolate(lost), "GET", "/usage", { key: token }))).toMatchObject({
      status: 503,
      code: "CONTROL_UNAVAILABLE",
    });
    expect((await send(isolate(), "GET", "/usage", { key: token })).status).toBe(200);
  });

  it("asks CONTROL where KV is down", async () => {
    const token = await tokenOf("ada");
    await revoke("ada");
    const down = imagesThat(() => Promise.reject(new Error("down")));
    expect(await refusalOf(await send(isolate(down), "GET", "/usage", { key: token }))).toMatchObject({
      code: "TOKEN_REVOKED",
    });
  });
});

const planWith = (unit: string) => ({ name: "pro", value: { rules: [{ unit, limit: 1 }] } });

describe("CONTROL's copy in KV", () => {
  it("is made when CONTROL is first asked, though nothing was ever set", async () => {
    expect(await copy()).toBeNull();
    await control().snapshot(0);
    await vi.waitFor(async () => expect(await copy()).toMatchObject({ format: 1, version: 0, users: [] }));
  });

  it("is there once the operator has an answer, with all that was said at once", async () => {
    await Promise.all(Array.from({ length: 20 }, (_, at) => control().revokeUser(`user:${at}`, 1)));
    const { version, users } = (await copy()) as { version: number; users: unknown[] };
    expect([version, users.length]).toEqual([20, 20]);
  });

  it("is written once at a time, so that no older one arrives last", async () => {
    let [writing, most] = [0, 0];
    const kv: object = Object.getPrototypeOf(env.IMAGES);
    const put = env.IMAGES.put;
    vi.spyOn(kv as KVNamespace, "put").mockImplementation(async function (this: KVNamespace, ...args: unknown[]) {
      most = Math.max(most, ++writing);
      await Reflect.apply(put, this, args);
      writing -= 1;
    });
    await Promise.all([1, 2, 3].map((at) => control().revokeUser(`user:${at}`, 1)));
    expect([most, (await copy())?.["version"]]).toEqual([1, 3]);
  });

  it("is a debt while KV does not take it, and the operator has the answer all the same", async () => {
    const put = vi.spyOn(Object.getPrototypeOf(env.IMAGES), "put").mockRejectedValue(new Error("429"));
    expect((await revoke("ada")).status).toBe(200);
    expect(await copy()).toBeNull();
    put.mockRestore();
    await vi.waitFor(async () => expect(await copy()).toMatchObject({ users: [{ name: "user:ada" }] }), 10_000);
  });
});
