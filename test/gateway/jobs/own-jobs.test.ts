// A user's jobs after they were submitted: followed, retried, purged and listed by their owner, and by nobody else.
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { resultKey } from "../../../src/gateway/kept-result.ts";
import { send } from "../../support/callers.ts";
import { expectProblem } from "../../support/problems.ts";
import { testSettings } from "../../support/settings.ts";
import { FakeUpstream, json, model, prompt, watchCanary } from "./fake-upstream.ts";

watchCanary();

const ended = (cost: number) => ({ id: "job-1", status: "COMPLETED", output: { cost } });
const refOf = (path: string) => path.split("/").at(-1) ?? "";

describe("following", () => {
  it.each([
    ["status", "GET"],
    ["status", "POST"],
    ["status-sync", "GET"],
    ["stream", "GET"],
    ["cancel", "POST"],
    ["retry", "POST"],
    ["events", "GET"],
    ["events", "POST"],
  ])("%s by %s opens for the owner alone", async (operation, method) => {
    const upstream = new FakeUpstream(({ path }) => json({ ...ended(0), id: refOf(path), stream: [] }));
    const path = `/v2/${model}/${operation}/${await upstream.job()}`;
    await expectProblem(await upstream.call(method, path, { key: await upstream.token("eve") }), "JOB_NOT_FOUND");
    const elsewhere = path.replace(model, "black-forest-labs-flux-1-dev");
    await expectProblem(await upstream.call(method, elsewhere), "JOB_NOT_FOUND");
    expect(upstream.seen).toEqual([]);
    expect((await upstream.call(method, path)).status).toBe(200);
  });

  it("tells what was kept once the upstream has forgotten, and else that the job is unknown", async () => {
    const upstream = new FakeUpstream(() => json({ error: "job not found" }, 404));
    const id = await upstream.job();
    const path = `/v2/${model}/status/${id}`;
    await expectProblem(await upstream.call("GET", path), "JOB_NOT_FOUND");
    const kept = { id, status: "COMPLETED", output: { cost: 0.002 } };
    await env.IMAGES.put(resultKey(id.split(".")[1] ?? ""), JSON.stringify(kept));
    expect(await (await upstream.call("GET", path)).json()).toEqual(kept);
  });

  it("settles a job whose stream says that it ended", async () => {
    const upstream = new FakeUpstream(({ path }) =>
      json(path.includes("/stream/") ? { status: "COMPLETED", stream: [] } : ended(0.004)),
    );
    await upstream.call("GET", `/v2/${model}/stream/${await upstream.job()}`);
    expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.004 }]);
  });

  it("says what a job cost, once", async () => {
    const upstream = new FakeUpstream(() => json(ended(0.0024)));
    const path = `/v2/${model}/status/${await upstream.job()}`;
    const answers = [await upstream.call("GET", path), await upstream.call("GET", path)];
    expect(answers.map(({ headers }) => headers.get("X-Cost"))).toEqual(["0.0024", "0.0024"]);
    expect(await upstream.jobs()).toMatchObject([{ costUsd: 0.0024 }]);
  });
});

describe("a retry", () => {
  it("is admitted anew, keeps the handle, and settles again", async () => {
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "FAILED", error: "x" }));
    const id = await upstream.job();
    const status = `/v2/${model}/status/${id}`;
    await upstream.call("GET", status);
    upstream.answer = () => json({ id: "job-1", status: "IN_QUEUE" });
    const retried = await upstream.call("POST", `/v2/${model}/retry/${id}`);
    expect(await retried.json()).toEqual({ id, status: "IN_QUEUE" });
    upstream.answer = () => json(ended(0.003));
    await upstream.call("GET", status);
    expect(await upstream.jobs()).toMatchObject([
      { status: "COMPLETED", costUsd: 0.003 },
      { status: "FAILED", costUsd: 0 },
    ]);
  });

  it("that the upstream refuses owes nothing", async () => {
    const upstream = new FakeUpstream(() => json({ error: "not failed" }, 400));
    await expectProblem(await upstream.call("POST", `/v2/${model}/retry/${await upstream.job()}`), "UPSTREAM_INVALID");
    expect(await upstream.jobs()).toHaveLength(1);
  });
});

describe("purging and listing", () => {
  async function withJobs(count: number): Promise<FakeUpstream> {
    let made = 0;
    const upstream = new FakeUpstream(({ path }) => {
      const [, , , operation, ref = ""] = path.split("/");
      if (operation === "run") return json({ id: `job-${++made}`, status: "IN_QUEUE" });
      if (operation === "cancel") return json({ id: ref, status: "CANCELLED" });
      return json({ id: ref, status: ref === "job-2" ? "IN_PROGRESS" : "IN_QUEUE" });
    });
    for (let n = 0; n < count; n++) await upstream.submit();
    upstream.seen.length = 0;
    return upstream;
  }

  it("cancels the caller's own waiting jobs, and says how many", async () => {
    const upstream = await withJobs(3);
    const stranger = await upstream.call("POST", `/v2/${model}/purge-queue`, { key: await upstream.token("eve") });
    expect(await stranger.json()).toEqual({ removed: 0, status: "completed" });
    const answer = await upstream.call("POST", `/v2/${model}/purge-queue`);
    expect(await answer.json()).toEqual({ removed: 2, status: "completed" });
    const cancelled = upstream.seen.filter(({ path }) => path.includes("/cancel/")).map(({ path }) => refOf(path));
    expect(cancelled.sort()).toEqual(["job-1", "job-3"]);
    expect((await upstream.jobs()).map(({ status }) => status)).toEqual(["CANCELLED", "IN_QUEUE", "CANCELLED"]);
  });

  it("cancels at most fifty a call", async () => {
    const upstream = await withJobs(52);
    const answer = await upstream.call("POST", `/v2/${model}/purge-queue`);
    expect(await answer.json()).toEqual({ removed: 49, status: "completed" });
  });

  it("lists the caller's own jobs, page by page, without asking the upstream", async () => {
    const upstream = await withJobs(3);
    const page = await upstream.call("GET", `/v2/${model}/requests?offset=1&limit=1`);
    expect(await page.json()).toEqual({
      requests: [{ id: expect.stringMatching(/^job-2\./), status: "IN_QUEUE", submittedAt: expect.any(String) }],
      ...{ total: 3, offset: 1, limit: 1, hasMore: true },
    });
    const empty = await upstream.call("GET", `/v2/${model}/requests`, { key: await upstream.token("eve") });
    expect(await empty.json()).toMatchObject({ requests: [], total: 0 });
    expect(upstream.seen).toEqual([]);
    await expectProblem(await upstream.call("GET", `/v2/${model}/requests?limit=1000`), "INVALID_REQUEST");
  });

  it("hands the operator on to the upstream, for everybody's", async () => {
    const upstream = new FakeUpstream(({ path }) =>
      json(path.endsWith("requests") ? { requests: [], total: 9 } : { removed: 7 }),
    );
    const key = testSettings.ADMIN_TOKEN;
    expect(await (await upstream.call("GET", `/v2/${model}/requests`, { key })).json()).toMatchObject({ total: 9 });
    expect(await (await upstream.call("POST", `/v2/${model}/purge-queue`, { key })).json()).toEqual({ removed: 7 });
    expect(upstream.seen.map(({ method }) => method)).toEqual(["GET", "POST"]);
  });
});

describe("what the operator switches", () => {
  const put = (upstream: FakeUpstream, name: string, value: object) =>
    send(upstream.env, "PUT", `/admin/models/${name}`, { key: testSettings.ADMIN_TOKEN, body: value });

  it("serves no model that is off, and again one that is on", async () => {
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
    await put(upstream, model, { enabled: false });
    await expectProblem(await upstream.submit(), "MODEL_DISABLED");
    await put(upstream, model, { enabled: true });
    expect((await upstream.submit()).status).toBe(200);
    expect(upstream.seen).toHaveLength(1);
  });

  it("opens an endpoint that the catalog does not know, at the stated price", async () => {
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
    const run = () => upstream.call("POST", "/v2/own-endpoint/run", { body: prompt });
    await expectProblem(await run(), "MODEL_NOT_FOUND");
    await put(upstream, "own-endpoint", { passthrough: true, maxUsd: 0.07 });
    expect((await run()).status).toBe(200);
    expect(await upstream.jobs()).toMatchObject([{ model: "own-endpoint", reservedUsd: 0.07 }]);
  });
});
