// What was handed out is paid for, however the job ends: through the front door, with the payer's real meter.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { UserMeter } from "../../../src/index.ts";
import { FakeUpstream, json, watchCanary } from "./fake-upstream.ts";

watchCanary();

const model = "gpt-oss-120b";
const body = { input: { prompt: "a story", max_tokens: 1000 }, policy: { ttl: 60_000 } };
const words = "word ".repeat(40);
const chunk = { output: { text: [words] } };
/** 10 USD a million tokens, four bytes a token. */
const priceOf = (textBytes: number) => (10 * (Math.ceil(JSON.stringify(body).length / 4) + textBytes / 4)) / 1e6;

async function running() {
  const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
  const submitted = await upstream.call("POST", `/v2/${model}/run`, { body });
  const { id } = await submitted.json<{ id: string }>();
  const ask = (operation: string, answer: object, method = "GET") => {
    upstream.answer = () => json(answer);
    return upstream.call(method, `/v2/${model}/${operation}/${id}`);
  };
  return { upstream, id, ask };
}

const ended = (status: string) => ({ id: "job-1", status });

describe("attack H4: a job that handed out text costs it", () => {
  it.each([
    ["run, stream, cancel", "stream", { status: "IN_PROGRESS", stream: [chunk, chunk] }, "cancel", "CANCELLED"],
    ["a short executionTimeout", "stream", { status: "IN_PROGRESS", stream: [chunk, chunk] }, "status", "TIMED_OUT"],
    [
      "a partial status, then cancel",
      "status",
      { ...ended("IN_PROGRESS"), output: [words, words] },
      "cancel",
      "CANCELLED",
    ],
  ])("%s", async (_name, operation, handed, end, status) => {
    const { upstream, ask } = await running();
    await ask(operation, handed);
    await ask(end, ended(status), end === "cancel" ? "POST" : "GET");
    const [job] = await upstream.jobs();
    expect(job).toMatchObject({ status });
    expect(job?.costUsd).toBeCloseTo(priceOf(2 * words.length), 5);
  });

  it("events, then cancel", async () => {
    const { upstream, id, ask } = await running();
    const polls = [json({ status: "IN_PROGRESS", stream: [chunk, chunk] }), json({ error: "gone" }, 500)];
    upstream.answer = () => polls.shift() ?? json({}, 500);
    await upstream.call("GET", `/v2/${model}/events/${id}`);
    await ask("cancel", ended("CANCELLED"), "POST");
    const [job] = await upstream.jobs();
    expect(job?.costUsd).toBeCloseTo(priceOf(2 * words.length), 5);
  });

  it("a short ttl", async () => {
    const { upstream, ask } = await running();
    await ask("stream", { status: "IN_PROGRESS", stream: [chunk] });
    const meter = env.USER_METER.getByName(`user:user-${upstream.origin}`) as unknown as DurableObjectStub<UserMeter>;
    await runInDurableObject(meter, (object) => {
      object.clock = () => Date.now() + 60 * 60_000;
      object.ask = async () => "unknown";
    });
    await runDurableObjectAlarm(meter);
    const [job] = await upstream.jobs();
    expect(job).toMatchObject({ status: "TIMED_OUT" });
    expect(job?.costUsd).toBeCloseTo(priceOf(words.length), 5);
  });

  it("and a cost that the upstream states wins", async () => {
    const { upstream, ask } = await running();
    await ask("stream", { status: "IN_PROGRESS", stream: [chunk] });
    await ask("status", { ...ended("COMPLETED"), output: [{ cost: 0.00001 }] });
    expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.00001 }]);
  });

  it("and one that handed out nothing costs nothing", async () => {
    const { upstream, ask } = await running();
    await ask("stream", { status: "IN_PROGRESS", stream: [] });
    await ask("cancel", ended("CANCELLED"), "POST");
    expect(await upstream.jobs()).toMatchObject([{ status: "CANCELLED", costUsd: 0 }]);
  });
});
