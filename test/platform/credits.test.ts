// Credits: public models take what they cost from their account, and at zero calls are refused; users learn no more than that.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { models } from "../../src/models/index.ts";
import { isolate, refusalOf, send } from "../support/callers.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { call } from "../support/front-door.ts";
import { testSettings } from "../support/settings.ts";

afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

const keys = { ann: "key-of-ann-0123456789abcdef0123456789", bob: "key-of-bob-0123456789abcdef0123456789" };
const model = "black-forest-labs-flux-1-schnell";
const picture = { input: { prompt: "a lighthouse", width: 256, height: 256 } };
const within = (credits: string) =>
  isolate({ PLATFORM_API_KEY: `ann=${keys.ann},bob=${keys.bob}`, PLATFORM_CREDITS: credits, ENDPOINTS: "own" });
const paint = (env: Env, key = keys.ann, operation = "runsync") =>
  send(env, "POST", `/platform/v2/${model}/${operation}`, { key, body: picture });

describe("an account with credits", () => {
  it("is let in until they are used up, and then refused at whatever costs", async () => {
    const env = within("ann=0.0004");
    const first = await paint(env);
    const { status, output } = await first.json<{ status: string; output: { cost: number } }>();
    expect([first.status, status]).toEqual([200, "COMPLETED"]);
    expect(output.cost).toBeGreaterThan(0);
    const left = await refusalOf(
      await vi.waitUntil(async () => {
        const answer = await paint(env);
        return answer.status === 401 && answer;
      }),
    );
    expect(left).toEqual({ status: 401, code: "NO_CREDITS", detail: "the account has no credits left" });
    expect((await refusalOf(await paint(env, keys.ann, "run"))).code).toBe("NO_CREDITS");
    const chat = await send(env, "POST", "/platform/v2/qwen3-32b-awq/openai/v1/chat/completions", {
      key: keys.ann,
      body: {},
    });
    expect(chat.status).toBe(401);
  });

  it("may still ask about its jobs, use its own endpoints, and be given more; others are not held to it", async () => {
    const env = within("ann=0,bob=1");
    expect((await paint(env)).status).toBe(401);
    expect((await send(env, "GET", `/platform/v2/${model}/health`, { key: keys.ann })).status).toBe(200);
    expect((await send(env, "POST", "/platform/v2/own/run", { key: keys.ann, body: { input: {} } })).status).toBe(200);
    expect((await paint(env, keys.bob)).status).toBe(200);
    expect((await paint(within("ann=1"))).status).toBe(200);
    expect((await paint(within("0"), keys.bob)).status).toBe(401);
    expect(await paint(within(""))).toMatchObject({ status: 200 });
  });

  it("pays nothing for a job that failed", async () => {
    const env = within("ann=0.0004");
    const failing = { input: { ...picture.input, prompt: "[fail]" } };
    for (let n = 0; n < 3; n++) {
      const answer = await send(env, "POST", `/platform/v2/${model}/runsync`, { key: keys.ann, body: failing });
      expect(await answer.json()).toMatchObject({ status: "FAILED" });
    }
    expect((await paint(env)).status).toBe(200);
  });
});

describe("what a job costs", () => {
  const chatModel = "qwen3-32b-awq";
  const spent = () => env.ACCOUNT.getByName("ann").spent();
  const ask = (method: string, path: string, body?: unknown) =>
    send(within("ann=1"), method, `/platform/v2/${path}`, { key: keys.ann, body });
  /** A real worker takes the job, and says what it made. */
  const work = async (id: string, request: unknown, outcome: object, chunks: readonly unknown[] = []) => {
    const queue = env.ENDPOINT_QUEUE.getByName(`ann/${id}`);
    await queue.take("w1", crypto.randomUUID(), 1, 0);
    const { id: job } = await (await ask("POST", `${id}/run`, request)).json<{ id: string }>();
    expect(await queue.take("w1", crypto.randomUUID(), 1, 0)).toMatchObject([{ id: job }]);
    for (const output of chunks) await ask("POST", `${id}/job-stream/w1/${job}`, { output });
    expect((await ask("POST", `${id}/job-done/w1/${job}`, outcome)).status).toBe(200);
  };
  const expectSpent = (microUsd: number) => vi.waitUntil(async () => (await spent()) === microUsd);

  it("is debited whoever worked it: what its answer says, else its price", async () => {
    await work(model, picture, { output: { image_url: "https://x.example.com/a.png", cost: 0.5 } });
    await expectSpent(500_000);
    await work(model, picture, { error: "no" });
    await work(model, picture, { output: "nothing said" });
    const [listed] = models.filter(({ id }) => id === model);
    await expectSpent(500_000 + (listed?.reserve(picture.input) ?? 0));
  });

  it("of a larger answer, or of what is no JSON to us, is its price, too", async () => {
    const [listed] = models.filter(({ id }) => id === model);
    const price = listed?.reserve(picture.input) ?? 0;
    await work(model, picture, { output: { image: "x".repeat(1_100_000), cost: 0.5 } });
    await expectSpent(price);
  });

  it("of a chat is what its answer or the last event of its stream says", async () => {
    const chat = { model: chatModel, messages: [{ role: "user", content: "hello" }] };
    const answer = await ask("POST", `${chatModel}/openai/v1/chat/completions`, chat);
    const { cost } = await answer.json<{ cost: number }>();
    await expectSpent(Math.round(cost * 1e6));
    const streamed = await call("POST", `/platform/v2/${chatModel}/openai/v1/chat/completions`, {
      headers: { Authorization: keys.ann },
      body: JSON.stringify({ ...chat, stream: true }),
      settings: { PLATFORM_API_KEY: `ann=${keys.ann}`, PLATFORM_CREDITS: "ann=1" },
    });
    expect(await streamed.text()).toContain('"cost"');
    await expectSpent(2 * Math.round(cost * 1e6));
    expect((await ask("GET", `${chatModel}/openai/v1/models`)).status).toBe(200);
    expect((await ask("POST", `${chatModel}/openai/v1/embeddings`, { input: "x" })).status).toBe(404);
    await expectSpent(2 * Math.round(cost * 1e6));
  });

  it("of a chat that nobody said the cost of is what is reserved for it", async () => {
    const openai_input = { messages: [{ role: "user", content: "hello" }], max_tokens: 1000 };
    const request = { input: { openai_route: "/v1/chat/completions", openai_input } };
    await work(chatModel, request, { output: { choices: [] } });
    const [listed] = models.filter(({ id }) => id === chatModel);
    const tokens = listed?.tokens;
    await expectSpent(tokens?.cost(tokens.read(JSON.stringify(request.input).length), 1000) ?? 0);
    await work(chatModel, { input: { ...request.input, openai_input: { messages: 5 } } }, { output: null });
    await vi.waitUntil(async () => (await spent()) > (listed?.maxPrice ?? 0));
  });
});

it("fault: a debit that the account did not hear is told again", async () => {
  await runInDurableObject(env.ENDPOINT_QUEUE.getByName(`ann/${model}`), (_, { storage }) => {
    storage.kv.put("spent", 7);
  });
  await evictDurableObject(env.ENDPOINT_QUEUE.getByName(`ann/${model}`));
  await send(within("ann=1"), "GET", `/platform/v2/${model}/health`, { key: keys.ann });
  await vi.waitUntil(async () => (await env.ACCOUNT.getByName("ann").spent()) === 7);
});

it("attack: a burst at the last credit runs what was let in, and nothing more", async () => {
  const env = within("ann=0.0004");
  const burst = await Promise.all(Array.from({ length: 8 }, () => paint(env)));
  expect(burst.every(({ status }) => status === 200 || status === 401)).toBe(true);
  await vi.waitUntil(async () => (await paint(env)).status === 401);
  expect((await paint(env, keys.ann, "run")).status).toBe(401);
});

it("the document says so of every route that costs credits", async () => {
  const { paths } = await (await send(within(""), "GET", "/openapi.json")).json<{
    paths: Record<string, Record<string, { responses: Record<string, { description: string }> }>>;
  }>();
  const saying = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      responses["401"]?.description.includes("NO_CREDITS") ? [`${method} ${path}`] : [],
    ),
  );
  const base = "post /platform/v2/{endpoint}";
  expect(saying.sort()).toEqual(
    [`${base}/openai/{route}`, `${base}/retry/{job}`, `${base}/run`, `${base}/runsync`].sort(),
  );
});

it("a user of the gateway hears that the service refused, and the log says why", async () => {
  const said = vi.spyOn(console, "error").mockImplementation(() => {});
  const env = within("0");
  const minted = await send(env, "POST", "/tokens", { key: testSettings.APP_SECRET, body: { user: "ada" } });
  const { token } = await minted.json<{ token: string }>();
  const refused = await send(env, "POST", `/v2/${model}/run`, { key: token, body: picture });
  const refusal = await refusalOf(refused);
  expect(refusal).toMatchObject({ status: 502, code: "UPSTREAM_REFUSED" });
  expect(refusal.detail).not.toMatch(/credit/);
  expect(said.mock.calls.flat().join()).toContain("the account has no credits left");
  const { jobs } = await (await send(env, "GET", "/usage", { key: token })).json<{ jobs: unknown[] }>();
  expect(jobs).toEqual([]);
});
