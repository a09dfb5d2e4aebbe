// What the operator sees of a user, what she may name, and how soon what she changes holds everywhere.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import { isolate, refusalOf, send } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { testSettings } from "../../support/settings.ts";
import { FakeUpstream, json, mintToken, model, prompt } from "../jobs/fake-upstream.ts";
import { codeOf as codeOfVerdict, meterOf, request } from "./admissions.ts";

const key = testSettings.ADMIN_TOKEN;
const admin = (method: string, path: string, body?: unknown, within = isolate()) =>
  send(within, method, `/admin${path}`, { key, ...(body !== undefined && { body }) });
const read = async (response: Promise<Response>) => (await response).json<Record<string, unknown>>();
const codeOf = async (response: Promise<Response>) => {
  const answer = await response;
  return answer.ok ? undefined : (await refusalOf(answer)).code;
};

/** Two isolates before one upstream, and the calls of a user to either. */
function stage() {
  let jobs = 0;
  const upstream = new FakeUpstream(({ path }) =>
    json({ id: path.includes("/status/") ? "job-1" : `job-${++jobs}`, status: "IN_QUEUE" }),
  );
  const [here, there]: [Env, Env] = [upstream.env, { ...upstream.env }];
  const submit = (within: Env, token: string) => send(within, "POST", `/v2/${model}/run`, { key: token, body: prompt });
  return { upstream, here, there, submit };
}

const day = Date.UTC(2031, 5, 16, 12);
const atSecond = (seconds: number) => vi.setSystemTime(day + seconds * 1000);

beforeEach(() => {
  vi.spyOn(console, "log").mockReturnValue();
  atSecond(0);
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await emptyStorage();
});

describe("a user", () => {
  it("that nobody knows is 404, after a refused first submit too, and is known from the first admitted one on", async () => {
    expect(await refusalOf(await admin("GET", "/users/ada"))).toMatchObject({ status: 404, code: "NOT_FOUND" });
    expect((await refusalOf(await admin("POST", "/users/ada/reset"))).code).toBe("NOT_FOUND");
    await meterOf("user:ada").admit(request({ plan: "anonymous", reserveMicroUsd: 10_000_000 }));
    expect((await refusalOf(await admin("GET", "/users/ada"))).code).toBe("NOT_FOUND");
    await meterOf("user:ada").admit(request({ plan: "anonymous" }));
    expect(await read(admin("GET", "/users/ada"))).toMatchObject({ user: "user:ada", plan: "anonymous" });
  });

  it.each<[string, string, string, object]>([
    ["a plan", "PATCH", "", { plan: "pro" }],
    ["rules", "PATCH", "", { rules: [] }],
    ["a grant", "POST", "/grant", { unit: "usd", amount: 5 }],
    ["a revocation", "POST", "/revoke", {}],
  ])("may be given %s before its first call, and is known by it", async (_, method, path, body) => {
    expect((await admin(method, `/users/ada${path}`, body)).status).toBe(200);
    expect((await admin("GET", "/users/ada")).status).toBe(200);
    expect((await admin("GET", "/users/bob")).status).toBe(404);
  });

  it("is shown under the plan of its last token, and who said so", async () => {
    const { here, submit } = stage();
    const shown = async () => {
      const { plan, planFrom, unknownPlan, limits } = await read(admin("GET", "/users/ada", undefined, here));
      return { plan, planFrom, unknownPlan, limits: (limits as { name: string; limit: number }[])[0]?.limit };
    };
    await submit(here, await mintToken(here, { user: "ada" }));
    expect(await shown()).toEqual({ plan: "free", planFrom: "default", unknownPlan: null, limits: 20 });
    await submit(here, await mintToken(here, { user: "ada", plan: "pro" }));
    expect(await shown()).toEqual({ plan: "pro", planFrom: "token", unknownPlan: null, limits: 300 });
    await admin("PATCH", "/users/ada", { plan: "free" });
    expect(await shown()).toEqual({ plan: "free", planFrom: "operator", unknownPlan: null, limits: 20 });
    await admin("PATCH", "/users/ada", { plan: null });
    expect(await shown()).toEqual({ plan: "pro", planFrom: "token", unknownPlan: null, limits: 300 });
  });

  it("whose token says a plan that nobody knows is shown under the one that holds", async () => {
    await meterOf("user:ada").admit(request({ plan: "teem" }));
    const shown = { plan: "anonymous", planFrom: "token", unknownPlan: "teem" };
    expect(await read(admin("GET", "/users/ada"))).toMatchObject(shown);
  });

  it("without an account is shown by its address, under the plan of sessions", async () => {
    const { here, submit } = stage();
    const { token, user } = await (await send(here, "POST", "/sessions")).json<{ token: string; user: string }>();
    await submit(here, token);
    expect(await read(admin("GET", "/users/addr:127.0.0.1%2F32", undefined, here))).toMatchObject({
      user: "addr:127.0.0.1/32",
      plan: "anonymous",
      planFrom: "session",
    });
    for (const [method, body] of [
      ["GET", undefined],
      ["PATCH", { plan: "pro" }],
    ] as const) {
      const refused = await refusalOf(await admin(method, `/users/${user}`, body));
      expect(refused).toMatchObject({ code: "INVALID_REQUEST", detail: expect.stringMatching(/addr:203\.0\.113\.7/) });
    }
  });
});

describe("attack M8: a /48 of visitors", () => {
  const network = "addr:2001:db8:1::/48";
  const path = "/users/addr:2001:db8:1::%2F48";
  const visit = async (at: number) => {
    const now = Date.now();
    const visitor = { plan: "anonymous", planFrom: "session", owner: `anon:${at}`, network } as const;
    const job = request({ ...visitor, admission: newAdmission(now) });
    return codeOfVerdict(await meterOf(`addr:2001:db8:1:${at.toString(16)}::/64`).admit(job));
  };
  const requestsOf = async (answer: Promise<Response>) => {
    const { limits } = (await read(answer)) as { limits: { name: string; limit: number; used: number }[] };
    const { limit, used } = limits.find(({ name }) => name === "requests-day") ?? { limit: 0, used: 0 };
    return { limit, used };
  };

  it("is read by its name, under ten times its visitors' plan", async () => {
    expect((await admin("GET", path)).status).toBe(404);
    for (const at of [1, 2]) expect(await visit(at)).toBeUndefined();
    const shown = await read(admin("GET", path));
    expect(shown).toMatchObject({ user: network, plan: "anonymous", spent: { reservedUsd: 0.04 } });
    expect(await requestsOf(admin("GET", path))).toEqual({ limit: 300, used: 2 });
    expect(await requestsOf(admin("GET", "/users/addr:2001:db8:1:1::%2F64"))).toEqual({ limit: 30, used: 1 });
  });

  it("is narrowed and widened by the operator's rules as they stand, by a plan ten times, and by grants", async () => {
    const rules = [{ unit: "requests", limit: 2, per: "day" }];
    expect(await requestsOf(admin("PATCH", path, { rules }))).toEqual({ limit: 2, used: 0 });
    for (const at of [1, 2]) expect(await visit(at)).toBeUndefined();
    expect(await visit(3)).toBe("RATE_LIMITED");
    await admin("POST", `${path}/grant`, { unit: "requests", amount: 1 });
    expect(await visit(3)).toBeUndefined();
    expect(await visit(4)).toBe("RATE_LIMITED");
    expect(await requestsOf(admin("PATCH", path, { rules: null, plan: "free" }))).toEqual({ limit: 5001, used: 3 });
    expect(await visit(4)).toBeUndefined();
  });

  it("is reset, and recounted of its visitors' jobs", async () => {
    await admin("PATCH", path, { rules: [{ unit: "requests", limit: 1, per: "day" }] });
    expect(await visit(1)).toBeUndefined();
    expect(await visit(2)).toBe("RATE_LIMITED");
    await admin("POST", `${path}/reset`, {});
    expect(await visit(2)).toBeUndefined();
    const counted = { usd: 0, assumedUsd: 0, reservedUsd: 0.04, jobs: 2 };
    expect(await read(admin("POST", `${path}/recount`, {}))).toEqual({ was: counted, is: counted, off: [] });
  });

  it("is one meter, however it is written", async () => {
    await visit(1);
    for (const name of ["addr:2001:DB8:0001::%2F48", "addr:2001:db8:1:0:0::%2F48", "addr:2001:db8:1:7::1%2F48"]) {
      expect(await read(admin("GET", `/users/${name}`))).toMatchObject({ user: network });
    }
    for (const name of ["addr:2001:db8:1::%2F32", "addr:203.0.113.7%2F48", "addr:2001:db8:1::", "addr:nobody%2F64"]) {
      expect(await refusalOf(await admin("PATCH", `/users/${name}`, { plan: "pro" }))).toMatchObject({
        code: "INVALID_REQUEST",
      });
    }
  });
});

describe("a name", () => {
  const rules = [{ unit: "jobs", limit: 1, models: ["flux"] }];
  it.each<[string, string, object, RegExp]>([
    ["PATCH", "/users/ada", { plan: "taem" }, /^plan: "taem" is not known; there are anonymous, free, pro, unlimited/],
    ["PATCH", "/users/ada", { rules }, /^rules: "flux" is not known; there are image, .*, gpt-oss-120b/],
    ["PUT", "/plans/team", { rules }, /^rules: "flux" is not known; there are image, .*, gpt-oss-120b/],
    ["PUT", "/models/flux", { enabled: false }, /^model: "flux" is not known; .* "passthrough" and "maxUsd" open/],
  ])("that nobody knows is refused at %s %s %j", async (method, path, body, detail) => {
    const refused = await refusalOf(await admin(method, path, body));
    expect(refused).toEqual({ status: 400, code: "INVALID_REQUEST", detail: expect.stringMatching(detail) });
  });

  it("is known once it was made: a plan, an endpoint, a kind, a model", async () => {
    await admin("PUT", "/models/my-endpoint", { passthrough: true, maxUsd: 1 });
    const models = ["my-endpoint", "video", model];
    const made = await admin("PUT", "/plans/team", { rules: [{ unit: "jobs", limit: 1, models }] });
    expect(made.status).toBe(200);
    expect(await read(admin("PATCH", "/users/ada", { plan: "team" }))).toMatchObject({ plan: "team" });
  });
});

describe("how soon it holds", () => {
  it("a user's plan, rules and grants: from the next submit on", async () => {
    const { here, there, submit } = stage();
    const token = await mintToken(here, { user: "ada" });
    expect(await codeOf(submit(there, token))).toBeUndefined();
    await admin("PATCH", "/users/ada", { rules: [{ unit: "requests", limit: 1, per: "day" }] }, here);
    expect(await codeOf(submit(there, token))).toBe("RATE_LIMITED");
    await admin("POST", "/users/ada/grant", { unit: "requests", amount: 1 }, here);
    expect(await codeOf(submit(there, token))).toBeUndefined();
    expect(await codeOf(submit(there, token))).toBe("RATE_LIMITED");
    await admin("POST", "/users/ada/reset", undefined, here);
    expect(await codeOf(submit(there, token))).toBeUndefined();
  });

  it("a revocation: for submits at once, for all else within 20 s", async () => {
    const { here, there, submit, upstream } = stage();
    const token = await mintToken(here, { user: "ada" });
    const { id } = await (await submit(there, token)).json<{ id: string }>();
    const status = () => send(there, "GET", `/v2/${model}/status/${id}`, { key: token });
    upstream.answer = () => json({ id: "job-1", status: "IN_PROGRESS" });
    await admin("POST", "/users/ada/revoke", {}, here);
    expect(await codeOf(submit(there, token))).toBe("TOKEN_REVOKED");
    expect(await codeOf(status())).toBeUndefined();
    atSecond(20);
    expect(await codeOf(status())).toBe("TOKEN_REVOKED");
    expect(await codeOf(submit(there, await mintToken(here, { user: "ada" })))).toBeUndefined();
  });

  it("an anonymous visitor's revocation: within 20 s, and its address's other visitors go on", async () => {
    const { here, there, submit } = stage();
    const visit = async () => (await send(here, "POST", "/sessions")).json<{ token: string; user: string }>();
    const [lost, kept] = [await visit(), await visit()];
    expect(await codeOf(submit(there, kept.token))).toBeUndefined();
    await admin("POST", `/users/${lost.user}/revoke`, {}, here);
    atSecond(20);
    expect(await codeOf(submit(there, lost.token))).toBe("TOKEN_REVOKED");
    expect(await codeOf(submit(there, kept.token))).toBe("TOO_MANY_JOBS");
  });

  it("one token's revocation: that token's alone", async () => {
    const { here, there, submit } = stage();
    const [lost, kept] = [await mintToken(here, { user: "ada" }), await mintToken(here, { user: "ada" })];
    const { jti: tokenId } = JSON.parse(atob(lost.split(".")[1] ?? "")) as { jti: string };
    await admin("POST", "/users/ada/revoke", { tokenId }, here);
    expect(await codeOf(submit(there, lost))).toBe("TOKEN_REVOKED");
    expect(await codeOf(submit(there, kept))).toBeUndefined();
  });

  it("a plan: at once in the isolate that was asked, within 20 s everywhere", async () => {
    const { here, there, submit } = stage();
    const token = await mintToken(here, { user: "ada" });
    expect(await codeOf(submit(there, token))).toBeUndefined();
    await admin("PUT", "/plans/free", { rules: [{ unit: "requests", limit: 0, per: "day" }] }, here);
    expect(await codeOf(submit(here, token))).toBe("RATE_LIMITED");
    expect(await codeOf(submit(there, token))).toBeUndefined();
    atSecond(20);
    expect(await codeOf(submit(there, token))).toBe("RATE_LIMITED");
  });

  it("a model's switch: within 20 s, for its jobs under way too, which are settled all the same", async () => {
    const { here, there, submit, upstream } = stage();
    const token = await mintToken(here, { user: "ada" });
    const { id } = await (await submit(there, token)).json<{ id: string }>();
    const { webhook } = JSON.parse(upstream.seen.at(-1)?.body ?? "") as { webhook: string };
    await admin("PUT", `/models/${model}`, { enabled: false }, here);
    expect(await codeOf(submit(here, token))).toBe("MODEL_DISABLED");
    expect(await codeOf(submit(there, token))).toBeUndefined();
    atSecond(20);
    expect(await codeOf(submit(there, token))).toBe("MODEL_DISABLED");
    expect(await codeOf(send(there, "GET", `/v2/${model}/status/${id}`, { key: token }))).toBe("MODEL_DISABLED");
    const notice = { id: "job-1", status: "COMPLETED", output: { cost: 0.002 } };
    upstream.answer = () => json(notice);
    expect((await send(there, "POST", new URL(webhook).pathname, { body: notice })).status).toBe(200);
    const { jobs } = await read(send(there, "GET", "/usage", { key: token }));
    expect(jobs).toContainEqual(expect.objectContaining({ status: "COMPLETED", costUsd: 0.002 }));
    await admin("PUT", `/models/${model}`, {}, there);
    expect(await codeOf(submit(there, token))).toBeUndefined();
  });

  it("the budget: within a minute, for whoever leased of it before", async () => {
    const { here, there, submit } = stage();
    await admin("PUT", "/budget", { dayUsd: 50, monthUsd: null }, here);
    const token = await mintToken(here, { user: "ada" });
    expect(await codeOf(submit(there, token))).toBeUndefined();
    await admin("PUT", "/budget", { dayUsd: 0, monthUsd: null }, here);
    expect(await codeOf(submit(there, await mintToken(here, { user: "bob" })))).toBe("QUOTA_EXCEEDED");
    atSecond(60);
    expect(await codeOf(submit(there, token))).toBe("QUOTA_EXCEEDED");
  });
});
