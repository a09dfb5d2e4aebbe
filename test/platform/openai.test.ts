// OpenAI's routes: a call becomes a job, its output the answer, its refusals of the shape that OpenAI's clients read.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { rates } from "../../src/contract/rates.ts";
import * as callers from "../support/callers.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { endpoint, eventually, key, noon, setTime } from "./support/endpoint.ts";

const text = "qwen3-32b-awq";
const image = "black-forest-labs-flux-1-dev";
const chat = "openai/v1/chat/completions";
const ask = (content: string, more: object = {}) => ({
  json: { model: text, messages: [{ role: "user", content }], ...more },
});

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

async function expectOpenAiError(response: Response, status: number, code: string): Promise<void> {
  expect(response.status).toBe(status);
  const { error } = await response.json<{ error: object }>();
  expect(error).toMatchObject({ code, message: expect.stringMatching(/\S/), type: expect.any(String), param: null });
}

const events = (body: string) =>
  body
    .split("\n\n")
    .filter(Boolean)
    .map((event) => event.replace(/^data: /, ""));

/** A worker takes the one call that there is, and says its first word. */
async function beginStream(e: ReturnType<typeof endpoint>): Promise<string> {
  await eventually(async () => expect(await e.take()).toHaveLength(1));
  const { requests } = await e.read<{ requests: { id: string }[] }>("GET", "requests");
  const id = String(requests[0]?.id);
  await e.chunk(id, "data: one\n\n");
  return id;
}

describe("a chat", () => {
  it("is answered whole, with usage and its cost", async () => {
    const response = await endpoint(text).send("POST", chat, ask("hello"));
    expect([response.status, response.headers.get("Content-Type")]).toEqual([200, "application/json"]);
    expect(await response.json()).toMatchObject({
      object: "chat.completion",
      cost: expect.any(Number),
      choices: [{ message: { role: "assistant", content: expect.stringContaining("hello") }, finish_reason: "stop" }],
      usage: { prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number) },
    });
  });

  it("streams events up to [DONE], the last one with usage and cost", async () => {
    const response = await endpoint(text).send("POST", chat, ask("hello", { stream: true }));
    expect(response.headers.get("Content-Type")).toBe("text/event-stream");
    const all = events(await response.text());
    expect(all.at(-1)).toBe("[DONE]");
    const chunks = all.slice(0, -1).map((event) => JSON.parse(event) as { choices: { delta: { content?: string } }[] });
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toContain("hello");
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { total_tokens: expect.any(Number) },
      cost: expect.any(Number),
    });
  });

  it("says no cost where [nocost] asks for it", async () => {
    const e = endpoint(text);
    const whole = await e.read("POST", chat, ask("[nocost]"));
    const streamed = await (await e.send("POST", chat, ask("[nocost]", { stream: true }))).text();
    expect([whole, streamed.includes('"cost"'), streamed.includes('"usage"')]).toEqual([
      expect.not.objectContaining({ cost: expect.anything() }),
      false,
      true,
    ]);
  });

  it("writes as many choices as it was asked for, and counts them all", async () => {
    const call = ask("hello", { n: 3, max_tokens: 4 });
    const { choices, usage } = await endpoint(text).read<{ choices: { index: number }[]; usage: object }>(
      ...(["POST", chat, call] as const),
    );
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(usage).toMatchObject({ completion_tokens: 12 });
  });

  it("that fails says so, in its answer or in its last event", async () => {
    const e = endpoint(text);
    await expectOpenAiError(await e.send("POST", chat, ask("[fail]")), 502, "MODEL_FAILED");
    const all = events(await (await e.send("POST", chat, ask("[fail]", { stream: true }))).text());
    expect(JSON.parse(all.at(-1) ?? "")).toMatchObject({
      error: { code: "MODEL_FAILED", message: expect.any(String) },
    });
  });

  it("is counted as an OpenAI call, and as nothing else", async () => {
    const e = endpoint(text);
    await (await e.send("POST", chat, ask("hello", { stream: true }))).text();
    const held = Array.from({ length: rates.openai.concurrent }, (_, at) => e.queue().wait("x", 0, `t${at}`, "openai"));
    await Promise.all(held);
    const id = await e.submit({ input: { prompt: "[timeout]" } });
    const waits = held.map((_, at) => e.queue().wait(id, 60_000, `t${at}`, "openai"));
    await eventually(async () => {
      const response = await e.send("POST", chat, ask("hello"));
      await expectOpenAiError(response, 429, "RATE_LIMITED");
    });
    expect((await e.send("POST", "run", { json: { input: { prompt: "hi" } } })).status).toBe(200);
    await e.post(`cancel/${id}`);
    await Promise.all(waits);
  });
});

describe("the models", () => {
  it("are listed with GET", async () => {
    expect(await endpoint(text).get("openai/v1/models")).toMatchObject({
      object: "list",
      data: [{ id: text, object: "model" }],
    });
  });
});

describe("a refusal", () => {
  it.each([
    ["of a wrong key", text, chat, { key: "wrong" }, 401, "UNAUTHORIZED"],
    ["of an unknown endpoint", "nobody", chat, {}, 404, "ENDPOINT_NOT_FOUND"],
    ["of an unknown route", text, "openai/v2/chat", {}, 404, "NOT_FOUND"],
    ["of a route that the model does not serve", text, "openai/v1/embeddings", {}, 404, "NOT_FOUND"],
    ["of a model that is no text model", image, chat, {}, 404, "NOT_FOUND"],
    ["of a body that is no object", text, chat, { json: [] }, 400, "INVALID_REQUEST"],
    ["of a body that is no JSON", text, chat, { json: undefined, body: "{" }, 400, "INVALID_JSON"],
  ] as const)("%s", async (_, id, route, change, status, code) => {
    const valid = ask("hello");
    expect((await endpoint(text).send("POST", chat, valid)).status).toBe(200);
    await expectOpenAiError(await endpoint(id).send("POST", route, { ...valid, ...change }), status, code);
    const streamed = { ...ask("hello", { stream: true }), ...change };
    await expectOpenAiError(await endpoint(id).send("POST", route, streamed), status, code);
  });
});

describe("a worker of one's own", () => {
  it("is handed route and call, and answers as OpenAI does", async () => {
    const e = endpoint();
    const answer = e.send("POST", chat, ask("hello"));
    await eventually(async () => expect(await e.get("health")).toMatchObject({ jobs: { inQueue: 1 } }));
    const job = await e.read<{ id: string; input: object }>("GET", "job-take/w1");
    expect(job.input).toEqual({ openai_route: "/v1/chat/completions", openai_input: ask("hello").json });
    await e.done(job.id, { output: { error: { message: "too long", code: 400 } } });
    expect((await answer).status).toBe(400);
  });

  /** Its output as `Response`, to a call that is not streamed. */
  async function answerOf(output: unknown): Promise<Response> {
    const e = endpoint();
    const answer = e.send("POST", chat, ask("hello"));
    await eventually(async () => expect(await e.take()).toHaveLength(1));
    const { requests } = await e.read<{ requests: { id: string }[] }>("GET", "requests");
    await e.done(String(requests[0]?.id), { output });
    return answer;
  }

  it.each<[string, unknown, unknown]>([
    [
      "one element",
      [{ object: "chat.completion", choices: [[1], [2]] }],
      { object: "chat.completion", choices: [[1], [2]] },
    ],
    ["one large element", [{ text: "]".repeat(2 * 1024 ** 2) }], { text: "]".repeat(2 * 1024 ** 2) }],
    ["several elements", [{ a: 1 }, { b: 2 }], [{ a: 1 }, { b: 2 }]],
    ["nothing", [], []],
  ])("whose handler is a generator, with a list of %s", async (_, output, answer) => {
    const response = await answerOf(output);
    expect([response.status, await response.json()]).toEqual([200, answer]);
  });

  const refusal = { message: "The model does not exist.", type: "NotFoundError", param: null };
  it.each<[string, object, number]>([
    ["OpenAI's error", { error: { ...refusal, code: 400 } }, 400],
    ["OpenAI's error without a status", { error: { ...refusal, code: "model_not_found" } }, 404],
    ["vLLM's older error", { object: "error", ...refusal, code: 422 }, 422],
  ])("that refuses with %s, alone or in a list", async (_, output, status) => {
    for (const answer of [output, [output]]) {
      const response = await answerOf(answer);
      expect([response.status, await response.json()]).toMatchObject([status, { error: refusal }]);
    }
  });

  it("that does not stream is answered with its output, whole", async () => {
    const e = endpoint();
    const answer = e.send("POST", chat, ask("hello", { stream: true }));
    await eventually(async () => expect(await e.take()).toHaveLength(1));
    const { requests } = await e.read<{ requests: { id: string }[] }>("GET", "requests");
    await e.done(String(requests[0]?.id), { output: { object: "chat.completion" } });
    const response = await answer;
    expect([response.status, response.headers.get("Content-Type")]).toEqual([200, "application/json"]);
    expect(await response.json()).toEqual({ object: "chat.completion" });
  });

  it("that never comes is given up after as long as a call may wait, streamed or not", async () => {
    const holds: number[] = [];
    const cancelled: string[] = [];
    const hold = (ms: number) => {
      holds.push(ms);
      if (holds.length > 2) throw new Error("asked again");
      return { head: { status: "IN_QUEUE" }, status: "IN_QUEUE", items: [], output: null };
    };
    const queue = {
      submit: async ({ id }: { id: string }) => ({ id }),
      wait: async (_: string, ms: number) => hold(ms),
      stream: async (_: string, ms: number) => hold(ms),
      cancel: async (id: string) => ({ id: cancelled.push(id), status: "CANCELLED" }),
    };
    const within = callers.isolate({ ENDPOINTS: "bare", ENDPOINT_QUEUE: { getByName: () => queue } });
    for (const stream of [false, true]) {
      const body = ask("hello", { stream }).json;
      const answer = await callers.send(within, "POST", `/platform/v2/bare/${chat}`, { key, body });
      await expectOpenAiError(answer, 502, "MODEL_FAILED");
    }
    expect([holds.length, Math.max(...holds) <= 300_000, cancelled.length]).toEqual([2, true, 2]);
  });

  it("attack: whose client leaves loses the job, also where no client may cancel any more", async () => {
    const e = endpoint();
    const answer = e.send("POST", chat, ask("hello", { stream: true }));
    const id = await beginStream(e);
    const { body } = await answer;
    for (let n = 0; n < rates.cancel.requests; n++) await e.queue().cancel("nobody");
    expect(await e.queue().cancel(id)).toMatchObject({ refused: "RATE_LIMITED" });
    await body?.cancel();
    await e.chunk(id, "data: two\n\n");
    await eventually(async () => expect(await e.get(`status/${id}`)).toMatchObject({ status: "CANCELLED" }));
  });

  it("streams raw events, which go out as they are", async () => {
    const e = endpoint();
    const answer = e.send("POST", chat, ask("hello", { stream: true }));
    const id = await beginStream(e);
    await e.chunk(id, "data: [DONE]\n\n");
    await e.done(id, { output: [] });
    expect(await (await answer).text()).toBe("data: one\n\ndata: [DONE]\n\n");
  });
});
