// status, status-sync and stream: a job after it was submitted, told to its owner and to nobody else.
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { resultKey } from "../../../src/gateway/quota/kept-result.ts";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, model, watchCanary } from "./fake-upstream.ts";

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

  it("fault: a HEAD of a stream takes nothing of it", async () => {
    const upstream = new FakeUpstream(() => json({ status: "IN_PROGRESS", stream: [{ output: "once" }] }));
    const path = `/v2/${model}/stream/${await upstream.job()}`;
    expect((await upstream.call("HEAD", path)).status).toBe(200);
    expect((await upstream.call("HEAD", `${path.slice(0, -1)}x`)).status).toBe(404);
    expect(upstream.seen).toEqual([]);
    expect(await (await upstream.call("GET", path)).json()).toMatchObject({ stream: [{ output: "once" }] });
  });

  it("says what a job cost, once", async () => {
    const upstream = new FakeUpstream(() => json(ended(0.0024)));
    const path = `/v2/${model}/status/${await upstream.job()}`;
    const answers = [await upstream.call("GET", path), await upstream.call("GET", path)];
    expect(answers.map(({ headers }) => headers.get("X-Cost"))).toEqual(["0.0024", "0.0024"]);
    expect(await upstream.jobs()).toMatchObject([{ costUsd: 0.0024 }]);
  });
});
