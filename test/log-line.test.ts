// The log: one line an exchange, with the same members in every deployment, written once all of it is known.
/// <reference types="vite/types/importMeta.d.ts" />
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { app } from "../src/app.ts";
import { FakeUpstream, json, model } from "./gateway/jobs/fake-upstream.ts";
import { isolate } from "./support/callers.ts";
import { call } from "./support/front-door.ts";
import { watchLog } from "./support/log-lines.ts";
import { deployedSettings, testSettings } from "./support/settings.ts";

/** In their order, as docs/deploy-and-limits.md has them too. */
const members = [
  ...["requestId", "owner", "method", "route", "path", "model", "operation"],
  ...["status", "code", "job", "ms", "cost", "cache", "inner"],
];
const texts = import.meta.glob<string>("../docs/deploy-and-limits.md", {
  query: "?raw",
  import: "default",
  eager: true,
});

const chatModel = "gpt-oss-120b";
const deployed = { LOCAL: "" };
const done = { id: "job-1", status: "COMPLETED", output: { cost: 0.002 } };

describe("the log", () => {
  it("has one line an exchange, and nothing that the client wrote", async () => {
    const log = watchLog();
    const headers = { Authorization: "Bearer key-in-header", Cookie: "cookie-value", "X-Api-Key": "key-in-header" };
    const body = JSON.stringify({ input: { prompt: "body-value" }, s3Config: { accessSecret: "s3-value" } });
    const asked = { headers, body, settings: deployedSettings };
    const response = await call("POST", "/models/path-value?key=query-value", asked);
    expect(log.errors).toEqual([]);
    expect(log.lines).toEqual([
      {
        requestId: response.headers.get("X-Request-Id"),
        method: "POST",
        status: 405,
        code: "METHOD_NOT_ALLOWED",
        ms: expect.any(Number),
      },
    ]);
    expect(log.text()).not.toMatch(/-value|key-in-header/);
  });

  it("has the path on a developer's machine alone, and never the query", async () => {
    const log = watchLog();
    await call("GET", "/images/a%1Bkey?ticket=value");
    await call("GET", "/images/a%1Bkey?ticket=value", { settings: deployedSettings });
    const line = { method: "GET", route: "/images/:key", status: 404, code: "NOT_FOUND" };
    expect(log.lines[0]).toMatchObject({ ...line, path: "/images/a%1Bkey" });
    expect(log.lines[1]).toMatchObject(line);
    expect(log.lines[1]).not.toHaveProperty("path");
  });

  it("has the path of a preflight, and of what a wrong setting refused", async () => {
    const log = watchLog();
    await call("OPTIONS", "/v2/any/run?key=value");
    await call("GET", "/v2/any/run?key=value", { settings: { ADMIN_TOKEN: "" } });
    expect(log.lines.map(({ path, status }) => [path, status])).toEqual([
      ["/v2/any/run", 204],
      ["/v2/any/run", 500],
    ]);
  });

  it("says which calls the Worker makes to itself", async () => {
    const log = watchLog();
    await call("GET", "/v1/pods", { headers: { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}` } });
    expect(log.lines.map(({ route, status, inner }) => [route, status, inner])).toEqual([
      ["/platform/v1/pods", 200, true],
      ["/v1/:path{.+}", 200, undefined],
    ]);
  });

  it("has a line for a preflight, for a route that is none, and for a wrong setting", async () => {
    const log = watchLog();
    await call("OPTIONS", "/healthz");
    await call("GET", "/nowhere");
    await call("HEAD", "/healthz");
    await call("GET", "/healthz", { settings: { ADMIN_TOKEN: "" } });
    expect(log.lines.map(({ method, route, status, code }) => [method, route, status, code])).toEqual([
      ["OPTIONS", undefined, 204, undefined],
      ["GET", undefined, 404, "NOT_FOUND"],
      ["HEAD", "/healthz", 200, undefined],
      ["GET", "/healthz", 500, "MISCONFIGURED"],
    ]);
  });

  it("has its members in one order", async () => {
    const upstream = new FakeUpstream(() => json(done));
    const log = watchLog();
    const prompt = { input: { prompt: "a lighthouse", seed: 7 } };
    await upstream.submit("runsync", prompt);
    const line = log.lines.at(-1) ?? {};
    expect(Object.keys(line)).toEqual(members.filter((name) => name !== "code" && name !== "inner"));
    expect(line).toMatchObject({
      method: "POST",
      route: "/v2/:model/runsync",
      path: `/v2/${model}/runsync`,
      model,
      operation: "runsync",
      owner: expect.stringMatching(/^[0-9a-f]{16}$/),
      status: 200,
      job: "COMPLETED",
      cost: 0.002,
      cache: "MISS",
    });
  });
});

describe("docs/deploy-and-limits.md", () => {
  it("has the log's members in their order", () => {
    const [, table = ""] = /\| Member \|.*\n((?:\|.*\n)+)/.exec(Object.values(texts)[0] ?? "") ?? [];
    const named = [...table.matchAll(/^\|([^|]*)\|/gm)].flatMap(([, cell = ""]) => [...cell.matchAll(/`(\w+)`/g)]);
    expect(named.map(([, name]) => name)).toEqual(members);
  });
});

describe("the line of a job", () => {
  it.each<[string, () => Response, object]>([
    ["waits", () => json({ id: "job-1", status: "IN_QUEUE" }), { status: 200, job: "IN_QUEUE" }],
    ["made something", () => json(done), { status: 200, job: "COMPLETED", cost: 0.002 }],
    ["failed", () => json({ id: "job-1", status: "FAILED", error: "x" }), { status: 200, job: "FAILED" }],
    ["is gone", () => json({ error: "job not found" }, 404), { status: 404, code: "JOB_NOT_FOUND" }],
    ["is of no status that there is", () => json({ id: "job-1", status: "<b>" }), { status: 200 }],
  ])("that %s says so", async (_, answer, expected) => {
    const upstream = new FakeUpstream(answer, deployed);
    const id = await upstream.job();
    const log = watchLog();
    await upstream.call("GET", `/v2/${model}/status/${id}`);
    const { requestId: _id, owner: _owner, ms: _ms, ...line } = log.lines.at(-1) ?? {};
    const route = { method: "GET", route: "/v2/:model/status/:job", model, operation: "status" };
    expect(line).toEqual({ ...route, ...expected });
  });

  it("that is cancelled says so", async () => {
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "CANCELLED" }));
    const id = await upstream.job();
    const log = watchLog();
    await upstream.call("POST", `/v2/${model}/cancel/${id}`);
    expect(log.lines).toMatchObject([{ route: "/v2/:model/cancel/:job", job: "CANCELLED" }]);
  });

  it("whose stream ended has what it cost", async () => {
    const upstream = new FakeUpstream(({ path }) =>
      json(path.includes("/stream/") ? { status: "COMPLETED", stream: [] } : done),
    );
    const id = await upstream.job();
    const log = watchLog();
    await upstream.call("GET", `/v2/${model}/stream/${id}`);
    expect(log.lines).toMatchObject([{ operation: "stream", job: "COMPLETED", cost: 0.002 }]);
  });

  it("whose answer is too large to hold has what it cost", async () => {
    const upstream = new FakeUpstream(() => json({ ...done, output: { film: "x".repeat(300_000), cost: 0.002 } }));
    const log = watchLog();
    await upstream.submit("runsync");
    expect(log.lines.filter(({ operation }) => operation === "runsync")).toMatchObject([
      { job: "COMPLETED", cost: 0.002 },
    ]);
  });

  it("that was refused says why", async () => {
    const upstream = new FakeUpstream(() => json(done));
    const log = watchLog();
    await upstream.submit("run", { input: { prompt: 7 } });
    await upstream.call("POST", "/v2/no-such-model/run", { body: {} });
    await upstream.call("GET", `/v2/${model}/status/job-1`, { key: "rubbish" });
    expect(log.lines.slice(-3).map(({ status, code }) => [status, code])).toEqual([
      [400, "INVALID_REQUEST"],
      [404, "MODEL_NOT_FOUND"],
      [401, "UNAUTHORIZED"],
    ]);
  });
});

describe("the line of an answer that goes on after its head", () => {
  const path = `/v2/${chatModel}/openai/v1/chat/completions`;
  const body = { model: chatModel, messages: [{ role: "user", content: "x" }], stream: true };

  it("of a streamed chat is one, written at its end, with what it cost", async () => {
    const { readable, writable } = new IdentityTransformStream();
    const upstream = new FakeUpstream(
      () => new Response(readable, { headers: { "Content-Type": "text/event-stream" } }),
    );
    const headers = { Authorization: `Bearer ${await upstream.token()}` };
    const log = watchLog();
    const ctx = createExecutionContext();
    const request = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await app.fetch(new Request(`https://gateway.example.com${path}`, request), upstream.env, ctx);
    expect(response.status).toBe(200);
    expect(log.lines).toEqual([]);

    const writer = writable.getWriter();
    const text = response.text();
    await writer.write(new TextEncoder().encode('data: {"cost":0.0005,"choices":[]}\n\ndata: [DONE]\n\n'));
    await writer.close();
    expect(await text).toContain("[DONE]");
    await waitOnExecutionContext(ctx);
    expect(log.lines).toMatchObject([{ route: "/v2/:model/openai/:route{.+}", status: 200, cost: 0.000_5 }]);
  });

  it("of a chat that is cut has what was seen of it", async () => {
    const cut = new ReadableStream({
      type: "bytes",
      start: (controller) => controller.enqueue(new TextEncoder().encode('data: {"choices":[]}\n\n'.repeat(200))),
      pull: (controller) => controller.error(new Error("reset")),
    });
    const upstream = new FakeUpstream(() => new Response(cut, { headers: { "Content-Type": "text/event-stream" } }));
    const log = watchLog();
    await upstream.call("POST", path, { body });
    expect(log.lines.filter(({ operation }) => operation === "openai")).toMatchObject([{ cost: expect.any(Number) }]);
  });

  it("of a job's events has its last status, and what it cost", async () => {
    const upstream = new FakeUpstream(({ path }) =>
      json(path.includes("/stream/") ? { status: "COMPLETED", stream: [] } : done),
    );
    const id = await upstream.job();
    const log = watchLog();
    await upstream.call("GET", `/v2/${model}/events/${id}`);
    expect(log.lines).toMatchObject([{ operation: "events", status: 200, job: "COMPLETED", cost: 0.002 }]);
  });

  it("of a job's events has the error that ended them", async () => {
    const upstream = new FakeUpstream(() => json({ error: "job not found" }, 404));
    const id = await upstream.job();
    const log = watchLog();
    await upstream.call("GET", `/v2/${model}/events/${id}`);
    expect(log.lines).toMatchObject([{ operation: "events", status: 200, code: "JOB_NOT_FOUND" }]);
  });
});

describe("a wrong setting", () => {
  it("is named once a minute, however often the gateway is asked", async () => {
    const log = watchLog();
    const env = isolate({ ...deployedSettings, BUDGET_DAY_USD: "much", JWKS_URL: "https://id.example.com/keys" });
    const ask = async (at: number) => {
      vi.setSystemTime(at);
      return app.fetch(new Request("https://gateway.example.com/healthz"), env, createExecutionContext());
    };
    const start = Date.UTC(2031, 0, 1);
    for (let second = 0; second < 60; second++) expect((await ask(start + second * 1000)).status).toBe(500);
    expect(log.errors).toHaveLength(1);
    await ask(start + 60_000);
    expect(log.errors).toHaveLength(2);
    expect(log.errors[1]).toMatchObject({ code: "MISCONFIGURED" });
    expect(log.errors[1]?.["faults"]).toEqual([
      { setting: "BUDGET_DAY_USD", problem: expect.stringMatching(/amount in USD/) },
      { setting: "JWT_ISSUER", problem: "is required with JWKS_URL" },
      { setting: "JWT_AUDIENCE", problem: "is required with JWKS_URL" },
    ]);
    expect(log.lines).toHaveLength(61);
    expect(log.text()).not.toContain(testSettings.SIGNING_SECRET);
    vi.useRealTimers();
  });
});
