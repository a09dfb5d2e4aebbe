// retry: the same job once more, admitted and settled anew.
import { describe, expect, it } from "vitest";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, model, watchCanary } from "./fake-upstream.ts";

watchCanary();

const ended = (cost: number) => ({ id: "job-1", status: "COMPLETED", output: { cost } });

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
