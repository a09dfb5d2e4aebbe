// Quotas through the front door: what a caller reads, what the operator sets, and what stands before it all.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { budgetName } from "../../../src/gateway/quota/budget.ts";
import { BudgetSlices } from "../../../src/gateway/quota/budget-slices.ts";
import { isolate, refusalOf, send } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { deployedSettings, testSettings } from "../../support/settings.ts";
import { MeterTap } from "../jobs/meter-tap.ts";
import { codeOf, ending, meterOf, request, stubOf } from "./admissions.ts";

const key = testSettings.ADMIN_TOKEN;
const admin = (method: string, path: string, body?: unknown, within = isolate()) =>
  send(within, method, `/admin${path}`, { key, ...(body !== undefined && { body }) });
const read = async <T = Record<string, unknown>>(response: Promise<Response>) => (await response).json<T>();

async function mint(user: string, extra: object = {}): Promise<string> {
  const minted = await send(isolate(), "POST", "/tokens", { key: testSettings.APP_SECRET, body: { user, ...extra } });
  return (await minted.json<{ token: string }>()).token;
}
const usageOf = async (token: string, within = isolate()) => send(within, "GET", "/usage", { key: token });

beforeEach(() => {
  vi.spyOn(console, "log").mockReturnValue();
  vi.spyOn(console, "error").mockReturnValue();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("GET /usage", () => {
  it("says limits, what is used and reserved, when it resets, and the last jobs", async () => {
    const token = await mint("ada", { plan: "free" });
    const [first, second] = [request({ admission: "1" }), request({ admission: "2" })];
    for (const job of [first, second]) await meterOf("user:ada").admit({ ...job, plan: "free" });
    await meterOf("user:ada").settle(ending(first.admission));
    const usage = await read<{ plan: string; limits: object[]; jobs: object[] }>(usageOf(token));
    expect(usage.plan).toBe("free");
    expect(usage.limits).toEqual([
      ...[
        { name: "requests-minute", unit: "requests", limit: 20, used: 2, reserved: 0, remaining: 18 },
        { name: "requests-day", unit: "requests", limit: 500, used: 2, reserved: 0, remaining: 498 },
        { name: "jobs", unit: "jobs", limit: 3, used: 1, reserved: 0, remaining: 2 },
        { name: "usd-day", unit: "usd", limit: 1, used: 0.035, reserved: 0.02, remaining: 0.965 },
        { name: "usd-month", unit: "usd", limit: 10, used: 0.035, reserved: 0.02, remaining: 9.965 },
        { name: "bytes-day", unit: "bytes", limit: 1e9, used: 0, reserved: 0, remaining: 1e9 },
        { name: "stored", unit: "stored", limit: 2e9, used: 0, reserved: 0, remaining: 2e9 },
      ].map((limit) => ({ ...limit, resetsAt: limit.unit === "jobs" || limit.used === 0 ? null : expect.any(String) })),
    ]);
    expect(usage.jobs).toEqual([
      {
        model: "flux",
        status: "IN_QUEUE",
        reservedUsd: 0.02,
        costUsd: null,
        admittedAt: expect.any(String),
        endedAt: null,
      },
      expect.objectContaining({ status: "COMPLETED", costUsd: 0.015, endedAt: expect.any(String) }),
    ]);
  });

  it("shows a token's own rules beside the plan's", async () => {
    const token = await mint("ada", { plan: "unlimited", rules: [{ unit: "jobs", limit: 1 }], maxCostUsd: 2 });
    const { limits } = await read<{ limits: object[] }>(usageOf(token));
    expect(limits).toMatchObject([{ name: "token-jobs" }, { name: "token-cost", limit: 2, remaining: 2 }]);
  });

  it("is refused without a token, for a token of another operation, and where the meter is away", async () => {
    expect((await send(isolate(), "GET", "/usage")).status).toBe(401);
    expect((await refusalOf(await usageOf(await mint("ada", { operations: ["run"] })))).code).toBe(
      "OPERATION_FORBIDDEN",
    );
    const away = {
      getByName: () => ({ usage: () => Promise.reject(new Error()), jobs: () => Promise.reject(new Error()) }),
    };
    const refused = await refusalOf(await usageOf(await mint("ada"), isolate({ USER_METER: away })));
    expect(refused).toMatchObject({ status: 503, code: "METER_UNAVAILABLE" });
  });
});

describe("the flood shield", () => {
  const shield = (limit: () => Promise<{ success: boolean }>) => isolate({ FLOOD: { limit } });

  it("stops a payer before anything costs, and says when to come back", async () => {
    const token = await mint("ada");
    const limit = vi.fn(async () => ({ success: false }));
    const response = await usageOf(token, shield(limit));
    expect(response.headers.get("Retry-After")).toBe("10");
    expect((await refusalOf(response)).code).toBe("RATE_LIMITED");
    expect(limit).toHaveBeenCalledWith({ key: "user:ada" });
  });

  it("lets everybody through where it cannot be reached", async () => {
    const response = await usageOf(
      await mint("ada"),
      shield(() => Promise.reject(new Error("away"))),
    );
    expect(response.status).toBe(200);
  });
});

describe("the operator and a user", () => {
  it("sets a plan and rules, and takes them back", async () => {
    const plan = { plan: "pro" };
    expect(await read(admin("PATCH", "/users/ada", plan))).toMatchObject({
      user: "user:ada",
      plan: "pro",
      rules: null,
    });
    expect(await read(usageOf(await mint("ada", { plan: "free" })))).toMatchObject({ plan: "pro" });
    const rules = [{ unit: "jobs", limit: 1 }];
    expect(await read(admin("PATCH", "/users/ada", { rules }))).toMatchObject({ plan: "pro", rules });
    expect((await read<{ limits: object[] }>(admin("GET", "/users/ada"))).limits).toMatchObject([
      { name: "jobs", limit: 1 },
    ]);
    expect(await read(admin("PATCH", "/users/ada", { plan: null, rules: null }))).toMatchObject({
      plan: "free",
      rules: null,
    });
  });

  it("grants more for a time", async () => {
    const expiresAt = new Date(Date.now() + 60_000).toISOString();
    const granted = await read<{ limits: object[] }>(
      admin("POST", "/users/ada/grant", { unit: "usd", amount: 2.5, expiresAt }),
    );
    expect(granted).toMatchObject({ grants: [{ unit: "usd", amount: 2.5, expiresAt }] });
    expect(granted.limits).toContainEqual(expect.objectContaining({ name: "usd-day", limit: 3.5 }));
  });

  it("fault: three grants at once, and a plan beside them, are all kept", async () => {
    const expiresAt = new Date(Date.now() + 60_000).toISOString();
    const grants = [5, 7, 11].map((amount) => admin("POST", "/users/ada/grant", { unit: "usd", amount, expiresAt }));
    const plan = admin("PATCH", "/users/ada", { plan: "pro" });
    for (const answer of await Promise.all([...grants, plan])) expect(answer.status).toBe(200);
    const after = await read<{ grants: { amount: number }[] }>(admin("GET", "/users/ada"));
    expect(after.grants.map(({ amount }) => amount).sort((one, other) => one - other)).toEqual([5, 7, 11]);
    expect(after).toMatchObject({ plan: "pro" });
  });

  it("fault: a grant whose answer was lost is granted once", async () => {
    const tap = new MeterTap();
    let lost = 0;
    tap.lose = ({ name }) => (name === ("configure" as never) && ++lost === 1 ? "answer" : undefined);
    const within = isolate({ USER_METER: tap.namespace });
    const granted = await read(admin("POST", "/users/ada/grant", { unit: "jobs", amount: 2 }, within));
    expect(granted).toMatchObject({ grants: [{ unit: "jobs", amount: 2 }] });
    expect(lost).toBe(2);
  });

  it("fault: a new grant drops none that holds, and those that ended make room", async () => {
    const grant = (index: number, expiresAt: number) => ({
      id: String(index),
      unit: "jobs" as const,
      amount: 1,
      expiresAt,
    });
    const [ended, active] = [Date.now() - 1000, Date.now() + 60_000];
    const plant = (endedCount: number) => {
      const grants = Array.from({ length: 50 }, (_, index) => grant(index, index < endedCount ? ended : active));
      return runInDurableObject(stubOf("user:ada"), (meter) => {
        meter.clock = () => ended - 1;
        meter.configure({ grants });
        meter.clock = () => Date.now();
      });
    };
    const grantMore = () => admin("POST", "/users/ada/grant", { unit: "jobs", amount: 9 });
    await plant(0);
    expect(await refusalOf(await grantMore())).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
    expect((await read<{ grants: object[] }>(admin("GET", "/users/ada"))).grants).toHaveLength(50);
    await plant(1);
    expect((await read<{ grants: object[] }>(grantMore())).grants).toHaveLength(50);
  });

  it("lets counts begin anew", async () => {
    const job = request({ plan: "free" });
    await meterOf("user:ada").admit(job);
    await meterOf("user:ada").settle(ending(job.admission));
    const after = await read<{ limits: object[] }>(admin("POST", "/users/ada/reset"));
    expect(after.limits).toContainEqual(expect.objectContaining({ name: "usd-day", used: 0 }));
    expect(after).toMatchObject({ spent: { usd: 0.015, assumedUsd: 0, reservedUsd: 0 } });
  });

  it("revokes at the meter at once", async () => {
    const bearer = { issuedAt: Date.now(), tokenId: "t-1" };
    expect(await meterOf("user:ada").admit(request({ bearer }))).toMatchObject({ admitted: true });
    await admin("POST", "/users/ada/revoke", { tokenId: "t-1" });
    expect(codeOf(await meterOf("user:ada").admit(request({ bearer })))).toBe("TOKEN_REVOKED");
    const other = { ...bearer, tokenId: "t-2" };
    expect(await meterOf("user:ada").admit(request({ bearer: other }))).toMatchObject({ admitted: true });
    await admin("POST", "/users/ada/revoke", {});
    expect(codeOf(await meterOf("user:ada").admit(request({ bearer: other })))).toBe("TOKEN_REVOKED");
    expect((await read(admin("GET", "/users/ada")))["revokedAt"]).toEqual(expect.any(String));
  });

  it.each([
    ["PATCH", "/users/ada", { plan: "no plan" }, "INVALID_REQUEST"],
    ["PATCH", "/users/ada", { rules: [{ unit: "usd", limit: 1, per: "hour" }] }, "INVALID_REQUEST"],
    ["PATCH", "/users/ada", { plans: "pro" }, "INVALID_REQUEST"],
    ["POST", "/users/ada/grant", { unit: "jobs", amount: 1.5 }, "INVALID_REQUEST"],
    ["POST", "/users/ada/grant", { unit: "usd", amount: -1 }, "INVALID_REQUEST"],
    ["POST", "/users/ada/grant", { unit: "usd", amount: 1, expiresAt: "tomorrow" }, "INVALID_REQUEST"],
    ["PUT", "/plans/free", { rules: [{ unit: "jobs", limit: -1 }] }, "INVALID_REQUEST"],
    ["PUT", "/plans/no%20plan", { rules: [] }, "INVALID_REQUEST"],
    ["PUT", "/budget", { dayUsd: 1 }, "INVALID_REQUEST"],
    ["PUT", "/budget", { dayUsd: -1, monthUsd: null }, "INVALID_REQUEST"],
    ["PUT", "/budget", "{", "INVALID_JSON"],
    ["GET", "/plans/gone", undefined, "NOT_FOUND"],
  ])("is refused %s %s %j", async (method, path, body, code) => {
    expect((await refusalOf(await admin(method, path, body))).code).toBe(code);
  });

  it.each([
    ["GET", "/users/ada"],
    ["PATCH", "/users/ada"],
    ["POST", "/users/ada/grant"],
    ["POST", "/users/ada/reset"],
    ["GET", "/plans/free"],
    ["PUT", "/plans/free"],
    ["GET", "/budget"],
    ["PUT", "/budget"],
  ])("alone may %s %s", async (method, path) => {
    const token = await mint("ada");
    for (const other of [undefined, token, testSettings.APP_SECRET]) {
      const response = await send(isolate(), method, `/admin${path}`, other === undefined ? {} : { key: other });
      expect(response.status).toBe(401);
    }
  });
});

describe("the operator's plans", () => {
  it("go before the built-in ones, at once in the isolate that set them", async () => {
    const within = isolate();
    const rules = [{ unit: "requests", limit: 7, per: "hour" }];
    expect(await read(admin("GET", "/plans/free"))).toMatchObject({ plan: "free", rules: expect.any(Array) });
    expect(await read(admin("PUT", "/plans/free", { rules }, within))).toEqual({ plan: "free", rules });
    expect(await read(admin("GET", "/plans/free"))).toEqual({ plan: "free", rules });
    const { limits } = await read<{ limits: object[] }>(usageOf(await mint("ada", { plan: "free" }), within));
    expect(limits).toMatchObject([{ name: "requests-hour", limit: 7 }]);
  });
});

describe("a list of plans", () => {
  const rules = [{ unit: "jobs", limit: 7 }];

  it("has the operator's beside the built-in ones, and is told to whoever asks for another", async () => {
    await admin("PUT", "/plans/team", { rules });
    const { plans } = await read<{ plans: { plan: string }[] }>(admin("GET", "/plans"));
    expect(plans).toContainEqual({ plan: "team", rules });
    expect(plans.map(({ plan }) => plan)).toEqual(["anonymous", "free", "pro", "unlimited", "developer", "team"]);
    expect(await read(admin("GET", "/plans/taem"))).toMatchObject({
      status: 404,
      code: "NOT_FOUND",
      detail: 'plan: "taem" is not known; there are anonymous, free, pro, unlimited, developer, team',
    });
  });

  it("has no plan of a developer's machine in a deployment", async () => {
    const { plans } = await read<{ plans: { plan: string }[] }>(
      admin("GET", "/plans", undefined, isolate(deployedSettings)),
    );
    expect(plans.map(({ plan }) => plan)).toEqual(["anonymous", "free", "pro", "unlimited"]);
  });
});

describe("the app's budget", () => {
  it("is read, set, and refuses what exceeds it", async () => {
    expect(await read(admin("GET", "/budget"))).toMatchObject({ dayUsd: null, monthUsd: null });
    const budget = { dayUsd: 0.03, monthUsd: null };
    expect(await read(admin("PUT", "/budget", budget))).toMatchObject(budget);
    const asked = { hasCeiling: true };
    expect(await meterOf("user:ada").admit(request(asked))).toMatchObject({ admitted: true });
    expect(codeOf(await meterOf("user:bob").admit(request(asked)))).toBe("QUOTA_EXCEEDED");
    expect(await read(admin("GET", "/budget"))).toMatchObject({ day: { usedUsd: 0, leasedUsd: 0.02 } });
    await runInDurableObject(stubOf("user:ada"), (object) => object.alarm());
  });

  it("is asked about from when a ceiling is set, in every isolate, until it is taken back", async () => {
    const within = isolate();
    const asked = vi.spyOn(BudgetSlices.prototype, "admit");
    const token = await mint("ada", { plan: "unlimited" });
    const paint = (prompt: string) =>
      send(within, "POST", "/v2/black-forest-labs-flux-1-schnell/run", { key: token, body: { input: { prompt } } });
    expect((await paint("before")).status).toBe(200);
    expect(asked).not.toHaveBeenCalled();
    await admin("PUT", "/budget", { dayUsd: 0, monthUsd: null }, within);
    expect(await refusalOf(await paint("under a ceiling"))).toMatchObject({ code: "QUOTA_EXCEEDED" });
    await admin("PUT", "/budget", { dayUsd: null, monthUsd: null }, within);
    asked.mockClear();
    expect((await paint("after")).status).toBe(200);
    expect(asked).not.toHaveBeenCalled();
  });

  it("is summed up anew from the meters' reports", async () => {
    const today = Math.floor(Date.now() / 86_400_000);
    await runInDurableObject(env.BUDGET.getByName(budgetName), (budget, { storage: { sql } }) => {
      budget.report("a", [{ day: today, consumedMicroUsd: 5_000_000 }]);
      expect(budget.recount()).toEqual([]);
      sql.exec("UPDATE days SET allowed = 2400000000");
    });
    const day = new Date(today * 86_400_000).toISOString().slice(0, 10);
    const off = [{ day, wasUsd: 2400, isUsd: 5 }];
    expect(await read(admin("POST", "/budget/recount"))).toEqual({ off });
    expect(await read(admin("POST", "/budget/recount"))).toEqual({ off: [] });
    expect(await read(admin("GET", "/budget"))).toMatchObject({ day: { usedUsd: 5 } });
    expect(await refusalOf(await send(isolate(), "POST", "/admin/budget/recount"))).toMatchObject({ status: 401 });
  });
});

describe("a user's counters", () => {
  it("are made of their jobs anew, whatever they were", async () => {
    const [open, ended] = [request({ admission: "1" }), request({ admission: "2" })];
    for (const job of [open, ended]) await meterOf("user:ada").admit(job);
    await meterOf("user:ada").settle(ending(ended.admission));
    const is = { usd: 0.015, assumedUsd: 0, reservedUsd: 0.02, jobs: 1 };
    expect(await read(admin("POST", "/users/ada/recount"))).toEqual({ was: is, is, off: [] });
    await runInDurableObject(stubOf("user:ada"), (_object, { storage: { sql } }) => {
      const [row] = sql.exec<{ json: string }>("SELECT json FROM state").toArray();
      sql.exec("UPDATE state SET json = ?", row?.json.replaceAll("15000,0,20000", "15000,0,2400000000") ?? "");
    });
    await evictDurableObject(stubOf("user:ada"));
    expect(await read(admin("POST", "/users/ada/recount"))).toMatchObject({
      was: { ...is, reservedUsd: 2400 },
      is,
      off: expect.arrayContaining(["ever flux"]),
    });
    await evictDurableObject(stubOf("user:ada"));
    expect(await read(admin("POST", "/users/ada/recount"))).toEqual({ was: is, is, off: [] });
    expect(await refusalOf(await send(isolate(), "POST", "/admin/users/ada/recount"))).toMatchObject({ status: 401 });
  });
});
