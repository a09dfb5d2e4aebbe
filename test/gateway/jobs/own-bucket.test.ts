// A job with a bucket of its caller's: the links in its answer are the caller's own, and are left as they are.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { UserMeter } from "../../../src/index.ts";
import { isolate } from "../../support/callers.ts";
import { upstreamKey } from "../../support/canary.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { stubOf } from "../quota/admissions.ts";
import { chunked, FakeUpstream, json, logged, model, prompt, watchCanary } from "./fake-upstream.ts";

watchCanary();
afterEach(emptyStorage);

const accessSecret = "the-secret-of-a-bucket";
const s3Config = { accessId: "id", accessSecret, bucketName: "b", endpointUrl: "https://s3.example.com" };
const image_url = "https://s3.example.com/b/job-1/a.png?X-Amz-Signature=abc&X-Amz-Expires=604800";
const ended = { id: "job-1", status: "COMPLETED", output: { image_url, cost: 0.002 } };
const large = { ...prompt, s3Config, more: "x".repeat(300_000) };

const links = async () => (await env.IMAGES.list({ prefix: "media/" })).keys;
const gallery = async (upstream: FakeUpstream) =>
  (await (await upstream.call("GET", "/images")).json<{ images: unknown[] }>()).images;

describe.each([
  ["small", { ...prompt, s3Config }],
  ["large", large],
])("a %s request with an s3Config", (_, request) => {
  it.each(["run", "runsync"])(
    "by %s reaches the service whole, and its link stays as it is, wherever it is asked for",
    async (operation) => {
      const upstream = new FakeUpstream(() => json(operation === "run" ? { id: "job-1", status: "IN_QUEUE" } : ended));
      const response = await upstream.submit(operation, request);
      const answer = await response.json<{ id: string; output?: object }>();
      expect(JSON.parse(upstream.seen[0]?.body ?? "")).toMatchObject({ s3Config });
      if (operation === "runsync") expect(answer.output).toEqual(ended.output);
      upstream.answer = () => json(ended);
      const other = isolate({ UPSTREAM_URL: upstream.origin, UPSTREAM_API_KEY: upstreamKey });
      for (const within of [upstream.env, other]) {
        Object.assign(upstream, { env: within });
        const status = await upstream.call("GET", `/v2/${model}/status/${answer.id}`);
        expect(await status.json()).toMatchObject({ id: answer.id, output: ended.output });
      }
      expect(await links()).toEqual([]);
      expect(await gallery(upstream)).toEqual([]);
      expect(logged()).not.toContain(accessSecret);
    },
  );
});

it("a large answer's link stays as it is, too", async () => {
  const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
  const { id } = await (await upstream.submit("run", { ...prompt, s3Config })).json<{ id: string }>();
  const text = JSON.stringify({ ...ended, output: { ...ended.output, more: "x".repeat(300_000) } });
  upstream.answer = () => new Response(chunked(text), { headers: { "Content-Type": "application/json" } });
  const status = await upstream.call("GET", `/v2/${model}/status/${id}`);
  expect(await status.json()).toMatchObject({ id, output: { image_url } });
  expect(await links()).toEqual([]);
});

const streamed = (answer: object) =>
  new Response(chunked(JSON.stringify(answer)), { headers: { "Content-Type": "application/json" } });
const enlarged = { ...ended, output: { ...ended.output, more: "x".repeat(300_000) } };

it("attack: a runsync whose answer is too large to hold puts nothing into the gallery, nor does a later look", async () => {
  const upstream = new FakeUpstream(() => streamed(enlarged));
  const { id, output } = await (await upstream.submit("runsync", { ...prompt, s3Config })).json<{
    id: string;
    output: object;
  }>();
  expect(output).toMatchObject({ image_url });
  upstream.answer = () => json(ended);
  Object.assign(upstream, { env: isolate({ UPSTREAM_URL: upstream.origin, UPSTREAM_API_KEY: upstreamKey }) });
  const status = await upstream.call("GET", `/v2/${model}/status/${id}`);
  expect(await status.json()).toMatchObject({ id, output: ended.output });
  expect(await links()).toEqual([]);
  expect(await gallery(upstream)).toEqual([]);
});

it.each([
  ["small", () => json(ended)],
  ["large", () => streamed(enlarged)],
])("attack: a notice that comes before the %s answer to its submission makes no link", async (_, whole) => {
  const upstream = new FakeUpstream(() => json({}));
  const answer = Promise.withResolvers<Response>();
  const asked = Promise.withResolvers<string>();
  upstream.answer = ({ path, body }) => {
    if (!path.endsWith("/runsync")) return whole();
    asked.resolve((JSON.parse(body) as { webhook: string }).webhook);
    return answer.promise;
  };
  const payer = stubOf(`user:user-${upstream.origin}`);
  const submitting = upstream.submit("runsync", { ...prompt, s3Config });
  const hook = new URL(await asked.promise).pathname;
  expect((await upstream.call("POST", hook, { body: ended, key: "none" })).status).toBe(200);
  await runInDurableObject(payer, (object, state) => {
    object.ask = new UserMeter(state, upstream.env).ask;
    object.clock = () => Date.now() + 60_000;
  });
  await runDurableObjectAlarm(payer);
  expect(upstream.seen.at(-1)?.path).toBe(`/v2/${model}/status/job-1`);
  answer.resolve(whole());
  const { id } = await (await submitting).json<{ id: string }>();
  const status = await upstream.call("GET", `/v2/${model}/status/${id}`);
  expect(await status.json()).toMatchObject({ id, output: { image_url } });
  await runDurableObjectAlarm(payer);
  expect(await links()).toEqual([]);
  expect(await gallery(upstream)).toEqual([]);
});

it("a request without one has a link of ours", async () => {
  const upstream = new FakeUpstream(() => json(ended));
  const { output } = await (await upstream.submit("runsync")).json<{ output: { image_url: string } }>();
  expect(output.image_url).toMatch(/\/images\//);
});
