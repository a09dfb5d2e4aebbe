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

  it.each([
    [400, "NOT_RETRYABLE"],
    [409, "NOT_RETRYABLE"],
    [422, "UPSTREAM_INVALID"],
  ] as const)("that the upstream refuses with %i is %s, and owes nothing", async (status, code) => {
    const upstream = new FakeUpstream(() => json({ error: "not failed" }, status));
    await expectProblem(await upstream.call("POST", `/v2/${model}/retry/${await upstream.job()}`), code);
    expect(await upstream.jobs()).toMatchObject([{ status: "IN_QUEUE", costUsd: null }]);
  });

  it.each([
    ["COMPLETED", "NOT_RETRYABLE"],
    ["CANCELLED", "NOT_RETRYABLE"],
    ["FAILED", "JOB_NOT_FOUND"],
  ] as const)("of a job that the upstream has forgotten, and the meter knows as %s, is %s", async (status, code) => {
    const upstream = new FakeUpstream(() => json({ ...ended(0.003), status }));
    const id = await upstream.job();
    await upstream.call("GET", `/v2/${model}/status/${id}`);
    upstream.answer = () => json({ error: "job not found" }, 404);
    await expectProblem(await upstream.call("POST", `/v2/${model}/retry/${id}`), code);
    expect(await upstream.jobs()).toMatchObject([{ status }]);
  });
});
