// KV that says nothing, for good: jobs go on, and what they cost is settled.
import { afterEach, expect, it, vi } from "vitest";
import { ImageCache } from "../../../src/gateway/media/image-cache.ts";
import { Reuse } from "../../../src/gateway/media/reuse.ts";
import { hang, whileTimePasses } from "../media/studio.ts";
import { FakeUpstream, json, model, watchCanary } from "./fake-upstream.ts";

watchCanary();
afterEach(() => vi.restoreAllMocks());

const hungKv = { get: hang, getWithMetadata: hang, put: hang, delete: hang, list: hang };
const picture = { image_url: "https://cdn.example.net/a.png", cost: 0.01 };
const text = "cogito-671b-v2-1-fp8-dynamic";
const openAi = `/v2/${text}/openai/v1/chat/completions`;

it("fault: a request that may be reused is submitted, and ends", async () => {
  const upstream = new FakeUpstream(() => json({ id: "job-1", status: "COMPLETED", output: picture }), {
    IMAGES: hungKv,
  });
  const body = { input: { prompt: "a lighthouse", seed: 7 } };
  const answer = await whileTimePasses(() => upstream.submit("runsync", body));
  expect([answer.status, answer.headers.get("X-Cache")]).toEqual([200, "MISS"]);
  expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.01 }]);
});

it("fault: a link to an answer that others made is not waited for, and the job is submitted anew", async () => {
  const upstream = new FakeUpstream(() => json({ id: "job-1", status: "COMPLETED", output: picture }), {
    IMAGES: hungKv,
    REUSE_SCOPE: "shared",
  });
  const body = { input: { prompt: "a lighthouse", seed: 8 } };
  const media = {
    owner: "user:eve",
    model,
    field: "image_url",
    url: picture.image_url,
    cost: 1,
    completedAt: Date.now(),
  };
  const found = { key: "k".repeat(40), media: { ...media, expiresAt: Date.now() + 60_000 } } as never;
  vi.spyOn(Reuse.prototype, "find").mockResolvedValue(found);
  const states = vi.spyOn(ImageCache.prototype, "linkState");
  const answer = await whileTimePasses(() => upstream.submit("runsync", body));
  expect([answer.status, answer.headers.get("X-Cache")]).toEqual([200, "MISS"]);
  expect(states).toHaveBeenCalled();
});

it("fault: a job that the upstream has forgotten is answered from what the meter knows", async () => {
  const upstream = new FakeUpstream(({ path }) =>
    path.endsWith("/run") ? json({ id: "job-1", status: "IN_QUEUE" }) : json({ id: "job-1", status: "FAILED" }),
  );
  const id = await upstream.job();
  await upstream.call("GET", `/v2/${model}/status/${id}`);
  Object.assign(upstream.env, { IMAGES: hungKv });
  upstream.answer = () => json({ error: "job not found" }, 404);
  const answer = await whileTimePasses(() => upstream.call("GET", `/v2/${model}/status/${id}`));
  expect(await answer.json()).toMatchObject({ id, status: "FAILED" });
});

it("fault: an OpenAI call with an Idempotency-Key is settled at once, and its answer is asked for in vain", async () => {
  const upstream = new FakeUpstream(() => json({ object: "chat.completion", choices: [], cost: 0.000_01 }), {
    IMAGES: hungKv,
  });
  const body = { model: text, messages: [{ role: "user", content: "hi" }], max_tokens: 50 };
  const ask = () => upstream.call("POST", openAi, { headers: { "Idempotency-Key": "key-1" }, body });
  expect((await whileTimePasses(ask)).status).toBe(200);
  expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.000_01 }]);
  const again = await whileTimePasses(ask);
  expect([again.status, (await again.json<{ error: { code: string } }>()).error.code]).toEqual([503, "UNAVAILABLE"]);
});
