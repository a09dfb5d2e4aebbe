// A submit that nobody knows the fate of: its place is free at once, its money after a minute, and a later word settles it.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it, vi } from "vitest";
import type { UserMeter } from "../../../src/index.ts";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, mintToken, prompt, watchCanary } from "./fake-upstream.ts";

watchCanary();

const closed = (): Response => {
  throw new Error("Network connection lost.");
};
const taken = () => json({ id: "job-1", status: "IN_QUEUE" });
const key = { "Idempotency-Key": "once" };

async function visitor(user: string) {
  const upstream = new FakeUpstream(closed);
  const token = await mintToken(upstream.env, { user, plan: "unlimited", rules: [{ unit: "jobs", limit: 1 }] });
  const submit = (headers = {}) => upstream.submit("run", prompt, { ...headers, Authorization: `Bearer ${token}` });
  const jobs = async () => {
    const usage = await upstream.call("GET", "/usage", { key: token });
    return (await usage.json<{ jobs: { status: string; costUsd: number | null; reservedUsd: number }[] }>()).jobs;
  };
  const meter = env.USER_METER.getByName(`user:${user}`) as unknown as DurableObjectStub<UserMeter>;
  const wait = async (ms: number) => {
    await runInDurableObject(meter, (object) => {
      object.clock = () => Date.now() + ms;
    });
    await runDurableObjectAlarm(meter);
  };
  return { upstream, submit, jobs, wait, meter };
}

it("attack M5: a port that is closed locks nobody out, and costs nothing", async () => {
  const { upstream, submit, jobs, wait } = await visitor("m5");
  await expectProblem(await submit(), "UPSTREAM_UNREACHABLE");
  upstream.answer = taken;
  expect((await submit()).status).toBe(200);
  await wait(61_000);
  expect((await jobs()).find(({ status }) => status === "TIMED_OUT")).toMatchObject({ costUsd: 0 });
});

it("attack L1: an answer without a usable id locks nobody out, and costs nothing", async () => {
  const { upstream, submit, jobs, wait } = await visitor("l1");
  upstream.answer = () => json({ id: "a/../b", status: "IN_QUEUE" });
  await expectProblem(await submit(), "UPSTREAM_BAD_ANSWER");
  upstream.answer = taken;
  expect((await submit()).status).toBe(200);
  await wait(61_000);
  expect((await jobs()).find(({ status }) => status === "TIMED_OUT")).toMatchObject({ costUsd: 0 });
});

it("its idempotency key starts nothing anew: in progress while nobody knows, then its assumed end", async () => {
  const { upstream, submit, wait } = await visitor("doubt-key");
  await expectProblem(await submit(key), "UPSTREAM_UNREACHABLE");
  upstream.answer = taken;
  await expectProblem(await submit(key), "IN_PROGRESS");
  await wait(61_000);
  await expectProblem(await submit(key), "UPSTREAM_TIMEOUT");
  expect(upstream.seen).toHaveLength(1);
});

it("a notice that comes later names the job that the alarm asks about two seconds later", async () => {
  const { upstream, submit, jobs, wait, meter } = await visitor("doubt-notice");
  await submit();
  const { webhook } = JSON.parse(upstream.seen[0]?.body ?? "{}") as { webhook: string };
  const asked: string[] = [];
  await runInDurableObject(meter, (object) => {
    object.ask = async ({ upstreamId }) => {
      asked.push(upstreamId);
      return { status: "COMPLETED", costMicroUsd: 500_000, completedAt: Date.now() };
    };
  });
  const warned = vi.spyOn(console, "warn");
  const notice = { id: "job-9", status: "COMPLETED" };
  expect((await upstream.call("POST", new URL(webhook).pathname, { body: notice, key: "none" })).status).toBe(200);
  expect(upstream.seen).toHaveLength(1);
  await wait(2_500);
  expect(asked).toEqual(["job-9"]);
  expect(await jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.5 }]);
  const said = warned.mock.calls.flat().join();
  expect(said).toContain("only a notice named this job");
  expect(said).not.toContain("no cost in the answer");
});
