// One upstream job is charged once, however often it was retried, and whoever tells of its ends: polls, notices, isolates.
import { describe, expect, it } from "vitest";
import { FakeUpstream, json, model, prompt, watchCanary } from "./fake-upstream.ts";

watchCanary();

const job = (status: string, output?: object) => ({ id: "job-1", status, ...(output && { output }) });
const paid = job("COMPLETED", { cost: 0.5 });

async function submitted() {
  let truth: object = job("IN_QUEUE");
  const upstream = new FakeUpstream(({ path }) =>
    json(path.includes("/run") || path.includes("/retry") ? job("IN_QUEUE") : truth),
  );
  const { id } = await (await upstream.submit("run", prompt)).json<{ id: string }>();
  const { webhook } = JSON.parse(upstream.seen[0]?.body ?? "{}") as { webhook: string };
  const retry = async () => {
    expect((await upstream.call("POST", `/v2/${model}/retry/${id}`)).status).toBe(200);
    truth = job("IN_PROGRESS");
  };
  const tells = {
    poll: () => upstream.call("GET", `/v2/${model}/status/${id}`),
    notice: () => upstream.call("POST", new URL(webhook).pathname, { body: truth, key: "none" }),
    cancel: () => upstream.call("POST", `/v2/${model}/cancel/${id}`),
  };
  const end = async (as: object, ...by: (keyof typeof tells)[]) => {
    truth = as;
    for (const how of by) expect((await tells[how]()).status).toBe(200);
  };
  const charged = async () => (await upstream.jobs()).reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0);
  return { upstream, retry, end, charged };
}

describe("attack C2: a job that is retried", () => {
  it.each([
    ["polled", ["poll"], ["poll"]],
    ["told by a notice", ["notice"], ["notice"]],
    ["told twice, by a poll first", ["poll", "notice"], ["poll", "notice"]],
    ["told twice, by a notice first", ["notice", "poll"], ["notice", "poll"]],
    ["not heard of before", [], ["poll", "notice"]],
  ] as const)("until it is done, each end %s, costs what it says once", async (_name, failures, end) => {
    const job1 = await submitted();
    for (let retries = 0; retries < 5; retries++) {
      await job1.end(job("FAILED"), ...failures);
      await job1.retry();
    }
    await job1.end(paid, ...end, "poll", "notice");
    expect(await job1.charged()).toBe(0.5);
    const jobs = await job1.upstream.jobs();
    expect(jobs.filter(({ status }) => status === "COMPLETED")).toHaveLength(1);
    expect(jobs.every(({ costUsd }) => costUsd !== null)).toBe(true);
  });

  it("after a cancel is paid for once", async () => {
    const job1 = await submitted();
    await job1.end(job("CANCELLED"), "cancel");
    await job1.retry();
    await job1.end(paid, "poll", "notice");
    expect(await job1.charged()).toBe(0.5);
  });

  it("attack L2: ends after its retry was admitted", async () => {
    const job1 = await submitted();
    await job1.end({ ...job("FAILED"), delayTime: 1, executionTime: 1 }, "poll");
    await job1.retry();
    await job1.end({ ...paid, delayTime: 1, executionTime: 1 }, "poll");
    const response = await job1.upstream.call("GET", "/usage");
    const { jobs } = await response.json<{ jobs: { admittedAt: string; endedAt: string }[] }>();
    expect(jobs).toHaveLength(2);
    for (const { admittedAt, endedAt } of jobs)
      expect(Date.parse(endedAt)).toBeGreaterThanOrEqual(Date.parse(admittedAt));
  });
});
