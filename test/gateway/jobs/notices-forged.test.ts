// A notice is a knock: whoever learned its address changes nothing by it, whatever he says.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { UserMeter } from "../../../src/index.ts";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, model, prompt, watchCanary } from "./fake-upstream.ts";
import { MeterTap } from "./meter-tap.ts";

watchCanary();

const truth = { id: "job-1", status: "COMPLETED", output: { image_url: "https://cdn.example.net/true.png", cost: 5 } };
const forged = { ...truth, output: { image_url: "https://evil.example.net/a.png", cost: 0 } };

async function submitted(settings: object = {}) {
  let status = () => json(truth);
  const upstream = new FakeUpstream(
    ({ path }) => (path.includes("/status/") ? status() : json({ id: "job-1", status: "IN_QUEUE" })),
    settings,
  );
  const { id } = await (await upstream.submit("run", prompt)).json<{ id: string }>();
  const { webhook } = JSON.parse(upstream.seen[0]?.body ?? "{}") as { webhook: string };
  const asked = () => upstream.seen.filter(({ path }) => path.includes("/status/")).length;
  return {
    upstream,
    id,
    asked,
    knock: (body: unknown) => upstream.call("POST", new URL(webhook).pathname, { body, key: "none" }),
    say: (answer: () => Response) => {
      status = answer;
    },
  };
}

it("attack H3: a forged notice with the right URL sets no price and no picture", async () => {
  const { upstream, knock } = await submitted();
  expect((await knock(forged)).status).toBe(200);
  expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 5 }]);
  const { images } = await (await upstream.call("GET", "/images")).json<{ images: object[] }>();
  expect(JSON.stringify(images)).not.toContain("evil");
});

it("attack H3: a forged notice ends no job that goes on, and makes the alarm look again", async () => {
  const tap = new MeterTap();
  const { upstream, knock, say } = await submitted({ USER_METER: tap.namespace });
  say(() => json({ id: "job-1", status: "IN_PROGRESS" }));
  expect((await knock(forged)).status).toBe(200);
  say(() => json({ error: "job not found" }, 404));
  expect((await knock({ ...forged, status: "FAILED" })).status).toBe(200);
  expect(await upstream.jobs()).toMatchObject([{ status: "IN_QUEUE", costUsd: null }]);
  expect(tap.of("lookAgain")).toEqual(Array(2).fill([{ admission: expect.any(String), upstreamId: "job-1" }]));
  expect(tap.names()).not.toContain("settle");
});

it("costs one question and two calls of the meter, and none where the end is settled", async () => {
  const tap = new MeterTap();
  const { knock, asked } = await submitted({ USER_METER: tap.namespace });
  tap.calls.length = 0;
  await knock(truth);
  expect(tap.names()).toEqual(["job", "settle"]);
  expect(asked()).toBe(1);
  await knock(truth);
  expect(tap.names()).toEqual(["job", "settle", "job"]);
  expect(asked()).toBe(1);
});

it("names no other job than its own", async () => {
  const { upstream, knock } = await submitted();
  await expectProblem(await knock({ ...truth, id: "job-2" }), "JOB_NOT_FOUND");
  expect(await upstream.jobs()).toMatchObject([{ costUsd: null }]);
});

it.each(["status", "status-sync"])(
  "attack H3: an upstream that says our address back tells it to nobody on %s",
  async (operation) => {
    const { upstream, id, say } = await submitted();
    say(() => json({ ...truth, webhook: upstream.seen[0]?.body, input: { prompt: "x" } }));
    upstream.answer = () => json({ ...truth, webhook: "https://gateway.example.com/hooks/x", input: { prompt: "x" } });
    const answer = await (await upstream.call("GET", `/v2/${model}/${operation}/${id}`)).json();
    expect(answer).toMatchObject({ id, status: "COMPLETED" });
    expect(answer).not.toHaveProperty("webhook");
    expect(answer).not.toHaveProperty("input");
  },
);

it("attack H3: nor does a large answer tell it", async () => {
  const { upstream, id } = await submitted();
  const output = { note: "x".repeat(300 * 1024), cost: 5 };
  upstream.answer = () =>
    json({ id: "job-1", webhook: "https://gateway.example.com/hooks/x", status: "COMPLETED", output });
  const text = await (await upstream.call("GET", `/v2/${model}/status/${id}`)).text();
  expect(JSON.parse(text)).toMatchObject({ id, status: "COMPLETED" });
  expect(JSON.parse(text)).not.toHaveProperty("webhook");
  expect(text).not.toContain("/hooks/");
});

describe.each(["IN_QUEUE", "COMPLETED"])(
  "attack: a notice names another's job, which is %s, for a lost one",
  (status) => {
    const theirs = { id: "victims-job", status, ...(status === "COMPLETED" && { output: { cost: 1 } }) };
    const lost = () => {
      throw new Error("Network connection lost.");
    };

    it("and its sender gets no id of it: from no list, no purge and no Idempotency-Key", async () => {
      const user = `forger-${status}`;
      const upstream = new FakeUpstream(lost);
      const key = await upstream.token(user);
      const submit = () => upstream.call("POST", `/v2/${model}/run`, { key, body: prompt, headers });
      const headers = { "Idempotency-Key": "once" };
      await expectProblem(await submit(), "UPSTREAM_UNREACHABLE");
      const { webhook } = JSON.parse(upstream.seen[0]?.body ?? "{}") as { webhook: string };
      upstream.answer = () => json(theirs);
      expect((await upstream.call("POST", new URL(webhook).pathname, { body: theirs, key: "none" })).status).toBe(200);
      const meter = env.USER_METER.getByName(`user:${user}`) as unknown as DurableObjectStub<UserMeter>;
      await runInDurableObject(meter, (object) => {
        object.clock = () => Date.now() + 2_500;
        object.ask = async () => ({ status: theirs.status as "IN_QUEUE", costMicroUsd: null, completedAt: Date.now() });
      });
      await runDurableObjectAlarm(meter);
      upstream.seen.length = 0;
      const { requests } = await (await upstream.call("GET", `/v2/${model}/requests`, { key })).json<{
        requests: object[];
      }>();
      // The admission, which opens nothing.
      expect(requests).toMatchObject([{ id: expect.stringMatching(/^[0-9a-z]+$/), status }]);
      const purged = await upstream.call("POST", `/v2/${model}/purge-queue`, { key });
      expect(await purged.json()).toMatchObject({ removed: 0 });
      const code = status === "COMPLETED" ? "UPSTREAM_TIMEOUT" : "IN_PROGRESS";
      expect(await (await submit()).json()).toMatchObject({ code });
      expect(upstream.seen).toEqual([]);
      // What the relay says is believed, and the list names it again.
      const { admission = "" } = (await meter.jobs(`user:${user}`, model, 0, 1)).jobs[0] ?? {};
      await meter.bind([{ admission, upstreamId: "own-job" }]);
      const after = await upstream.call("GET", `/v2/${model}/requests`, { key });
      expect(await after.json()).toMatchObject({ requests: [{ id: expect.stringMatching(/^own-job\./) }] });
      expect(await (await submit()).json()).toMatchObject({ id: expect.stringMatching(/^own-job\./) });
    });
  },
);
