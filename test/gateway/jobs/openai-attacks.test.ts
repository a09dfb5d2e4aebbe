// What was tried against the books through openai/, and how it ends: nothing starts, or all that could be made is reserved.
import { describe, expect, it } from "vitest";
import { findModel } from "../../../src/models/index.ts";
import { isolate, send } from "../../support/callers.ts";
import { testSettings } from "../../support/settings.ts";
import { meterOf } from "../quota/admissions.ts";
import { chunked, FakeUpstream, json, leavingCaller, mintToken, watchCanary } from "./fake-upstream.ts";

watchCanary();

const text = "gpt-oss-120b";
const image = "black-forest-labs-flux-1-schnell";
const chatOf = (model: string) => `/v2/${model}/openai/v1/chat/completions`;
const chat = { model: text, messages: [{ role: "user", content: "hi" }], max_tokens: 5 };
const done = () => json({ object: "chat.completion", choices: [], cost: 0.000_01 });
const maxOf = (model: string) => Number(findModel(model)?.maxPrice) / 1e6;
const large = (more: object = {}) => ({
  ...chat,
  messages: [{ role: "user", content: "x".repeat(300 * 1024) }],
  ...more,
});

interface OpenAiError {
  readonly error: { readonly code: string; readonly param: string | null; readonly type: string };
}
const refusal = async (response: Response) => {
  const { error } = await response.json<OpenAiError>();
  return { status: response.status, code: error.code, param: error.param };
};
const spent = async (upstream: FakeUpstream) => {
  const usage = await upstream.call("GET", "/usage");
  const { spent: sums, jobs } = await usage.json<{ spent: { usd: number; reservedUsd: number }; jobs: object[] }>();
  return { sums, jobs };
};

describe("attack C1: an anonymous request with a negative picture's width", () => {
  it.each([
    { width: -1_000_000, height: 1_000_000 },
    { width: 1e200, height: -1e200 },
    { width: 0, height: 0, size: "1536x1536", n: 10 },
  ])("is 404 under openai/, and locks nobody out: %o", async (body) => {
    const upstream = new FakeUpstream(done);
    const answer = await upstream.call("POST", `/v2/${image}/openai/v1/images/generations`, { body });
    expect(await refusal(answer)).toEqual({ status: 404, code: "NOT_FOUND", param: null });
    expect(upstream.seen).toEqual([]);
    expect((await spent(upstream)).jobs).toEqual([]);
    expect((await upstream.submit()).status).not.toBe(429);
  });
});

describe("attack H5: a multiplier beside max_tokens", () => {
  it.each([
    ["a longer limit", { max_tokens: 1, max_completion_tokens: 131_072 }, 131_072],
    ["many choices", { max_tokens: 1, n: 128 }, 128],
    ["the best of many", { max_tokens: 1, best_of: 128 }, 128],
    ["no limit", { max_tokens: undefined }, 131_072],
  ])("is reserved: %s", async (_name, more, tokens) => {
    const reserved = async (body: object) => {
      const upstream = new FakeUpstream(() => json({ choices: [] }));
      await upstream.call("POST", chatOf(text), { body });
      const [job] = await upstream.jobs();
      expect(job?.costUsd).toBe(job?.reservedUsd);
      return Number(job?.reservedUsd);
    };
    const one = await reserved({ ...chat, max_tokens: 1, padding: "x".repeat(100) });
    expect(await reserved({ ...chat, ...more, padding: "x".repeat(100) })).toBeGreaterThan(
      one + ((tokens - 20) * 10) / 1e6,
    );
  });

  it("passes no limit on money: three parallel calls spend nothing", async () => {
    const upstream = new FakeUpstream(() => json({ choices: [], cost: 1.0001 }));
    const key = await mintToken(upstream.env, { user: "eve", plan: "unlimited", maxCostUsd: 0.05 });
    const bodies = [
      { max_tokens: 1, max_completion_tokens: 131_072 },
      { max_tokens: 1, max_output_tokens: 131_072 },
      { max_tokens: 100, n: 128 },
    ];
    const calls = bodies.map((more) => upstream.call("POST", chatOf(text), { key, body: { ...chat, ...more } }));
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([429, 429, 429]);
    expect(upstream.seen).toEqual([]);
  });

  it.each<[object, string]>([
    [{ n: -1 }, "n"],
    [{ n: "128" }, "n"],
    [{ n: 2.5 }, "n"],
    [{ n: 128, max_tokens: 131_072 }, "n"],
    [{ max_tokens: -5 }, "max_tokens"],
    [{ max_tokens: 0 }, "max_tokens"],
    [{ max_tokens: 1e300 }, "max_tokens"],
    [{ max_completion_tokens: "9" }, "max_completion_tokens"],
    [{ num_images: 100 }, "num_images"],
    [{ sampling_params: { n: 100 } }, "sampling_params.n"],
    [{ messages: [{ role: "user", content: 7 }] }, "messages[0].content"],
  ])("that is none is refused at the door, small or in a large body: %o", async (change, param) => {
    const upstream = new FakeUpstream(done);
    const valid = await upstream.call("POST", chatOf(text), { body: chat });
    expect(valid.status).toBe(200);
    const sent = upstream.seen.length;
    const refused = await upstream.call("POST", chatOf(text), { body: { ...chat, ...change } });
    expect(await refusal(refused)).toEqual({ status: 400, code: "INVALID_REQUEST", param });
    if (!("messages" in change)) {
      const cut = await upstream.call("POST", chatOf(text), { body: large(change) });
      expect(await refusal(cut)).toEqual({ status: 400, code: "INVALID_REQUEST", param });
    }
    expect(upstream.seen).toHaveLength(sent);
    expect((await spent(upstream)).jobs).toHaveLength(1);
  });

  it("written twice is relayed as it was read", async () => {
    const upstream = new FakeUpstream(done);
    const twice = JSON.stringify(chat).replace(/^\{/, `{"n":128,"max_tokens":131072,`).replace(/\}$/, `,"n":1}`);
    expect((await upstream.call("POST", chatOf(text), { body: twice })).status).toBe(200);
    expect(upstream.seen[0]?.body).not.toMatch(/128|131072/);
  });

  it("that /run's schema does not know is reserved at the model's highest price", async () => {
    const input = { prompt: "a cat", width: 256, height: 256 };
    for (const more of [{ num_images: 100 }, { n: 100 }, { sampling_params: { n: 100 } }]) {
      const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
      await upstream.submit("run", { input: { ...input, ...more } });
      expect((await upstream.jobs())[0]?.reservedUsd).toBe(maxOf(image));
    }
  });
});

describe("attack H5: a large chat", () => {
  it("passes at no less than all that it may cost", async () => {
    const upstream = new FakeUpstream(() => json({ choices: [] }));
    const answer = await upstream.call("POST", chatOf(text), { body: large({ max_tokens: undefined }) });
    expect(answer.status).toBe(200);
    expect((await upstream.jobs())[0]?.costUsd).toBe(maxOf(text));
  });

  it.each([
    ["hidden by its size", `"n":${"1".repeat(5000)}`],
    ["hidden in a large object", `"sampling_params":{"n":128,"pad":"${"x".repeat(5000)}"}`],
    ["hidden in a large object of any name", `"whatever":{"n":128,"pad":"${"x".repeat(5000)}"}`],
    ["hidden in a large list", `"whatever":[{"n":128,"pad":"${"x".repeat(5000)}"}]`],
    ["written twice within", `"whatever":{"n":128,"n":1}`],
    ["written twice", `"n":1,"n":128`],
    ["spelled in escapes", String.raw`"\u006e":128,"max_tokens":131072`],
  ])("with a multiplier %s is cut off before its last byte", async (_name, member) => {
    const upstream = new FakeUpstream(done);
    const { max_tokens: _, ...rest } = large();
    const body = JSON.stringify(rest).replace(/^\{/, `{${member},`);
    for (const carried of [body, chunked(body)]) {
      const answer = await upstream.call("POST", chatOf(text), { body: carried });
      expect(await refusal(answer)).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
    }
    expect(upstream.seen).toEqual([]);
    expect((await spent(upstream)).jobs).toEqual([]);
  });
});

describe("attack C1: a route that the model does not list", () => {
  const routes = ["completions", "responses", "embeddings", "images/generations", "audio/speech", "models/gpt-4"];
  const cases = [text, image].flatMap((model) => routes.map((route) => [model, route] as const));

  it.each([...cases, [image, "chat/completions"] as const])("is 404 at %s: %s", async (model, route) => {
    for (const stream of [false, true]) {
      const upstream = new FakeUpstream(done);
      const path = `/v2/${model}/openai/v1/${route}`;
      const answers = [
        await upstream.call("POST", path, { body: { ...chat, stream } }),
        await upstream.call("GET", path),
      ];
      for (const answer of answers) {
        expect(answer.headers.get("Content-Type")).toMatch(/^application\/json/);
        expect(await refusal(answer)).toEqual({ status: 404, code: "NOT_FOUND", param: null });
      }
      expect(upstream.seen).toEqual([]);
      expect((await spent(upstream)).jobs).toEqual([]);
    }
  });

  it.each(["embeddings", "completions"])("is 404 where the platform is embedded, streamed too: %s", async (route) => {
    const embedded = isolate();
    const key = await mintToken(embedded, { user: "ada", plan: "unlimited" });
    for (const base of [`/v2/${text}`, `/platform/v2/${text}`]) {
      for (const stream of [false, true]) {
        const at = base.startsWith("/platform") ? testSettings.PLATFORM_API_KEY : key;
        const body = { ...chat, stream };
        const answer = await send(embedded, "POST", `${base}/openai/v1/${route}`, { key: at, body });
        expect(await refusal(answer)).toEqual({ status: 404, code: "NOT_FOUND", param: null });
      }
    }
  });

  it("is relayed for an endpoint that the operator opened, at its stated price", async () => {
    const upstream = await openedUpstream();
    const body = { input: "x", n: 100 };
    const answer = await upstream.call("POST", "/v2/own-endpoint/openai/v1/embeddings", { body });
    expect(answer.status).toBe(200);
    expect(JSON.parse(upstream.seen[0]?.body ?? "")).toEqual(body);
    expect((await upstream.jobs())[0]?.reservedUsd).toBe(0.07);
  });
});

async function openedUpstream(answer: () => Response = () => json({ data: [] })): Promise<FakeUpstream> {
  const upstream = new FakeUpstream(answer);
  const opened = { key: testSettings.ADMIN_TOKEN, body: { passthrough: true, maxUsd: 0.07 } };
  await upstream.call("PUT", "/admin/models/own-endpoint", opened);
  return upstream;
}

describe("attack H5: a GET of an endpoint that the operator opened", () => {
  const routes = ["v1/generate", "v1/models/any", "v1/chat/completions"];

  it.each(routes)("costs its stated price and counts as a request: %s", async (route) => {
    const upstream = await openedUpstream();
    const answer = await upstream.call("GET", `/v2/own-endpoint/openai/${route}`);
    expect(answer.status).toBe(200);
    expect(upstream.seen).toMatchObject([{ method: "GET", path: `/v2/own-endpoint/openai/${route}`, body: "" }]);
    expect(await upstream.jobs()).toMatchObject([{ reservedUsd: 0.07, costUsd: 0.07 }]);
    expect((await upstream.call("HEAD", `/v2/own-endpoint/openai/${route}`)).status).toBe(404);
    expect(upstream.seen).toHaveLength(1);
  });

  it.each([{ maxCostUsd: 0.07 }, { rules: [{ unit: "requests", limit: 1, per: "day" }] }])(
    "is refused by a limit before anything is asked: %o",
    async (narrowed) => {
      const upstream = await openedUpstream();
      const key = await mintToken(upstream.env, { user: "eve", plan: "unlimited", ...narrowed });
      const asked = [1, 2, 3].map(() => upstream.call("GET", "/v2/own-endpoint/openai/v1/generate", { key }));
      expect((await Promise.all(asked)).map(({ status }) => status).sort()).toEqual([200, 429, 429]);
      expect(upstream.seen).toHaveLength(1);
    },
  );

  it("is paid by what it says, and by what it streams", async () => {
    const priced = await openedUpstream(() => json({ cost: 0.01 }));
    await priced.call("GET", "/v2/own-endpoint/openai/v1/generate");
    expect(await priced.jobs()).toMatchObject([{ costUsd: 0.01 }]);
    const events = { headers: { "Content-Type": "text/event-stream" } };
    const streamed = await openedUpstream(() => new Response("data: {}\n\n", events));
    await streamed.call("GET", "/v2/own-endpoint/openai/v1/generate");
    expect(await streamed.jobs()).toMatchObject([{ costUsd: 0.07 }]);
  });

  it("with an Idempotency-Key is made once, and is another call than a POST", async () => {
    const upstream = await openedUpstream();
    const headers = { "Idempotency-Key": "one" };
    const path = "/v2/own-endpoint/openai/v1/generate";
    const first = await upstream.call("GET", path, { headers });
    const again = await upstream.call("GET", path, { headers });
    expect([first.status, again.status, upstream.seen.length]).toEqual([200, 200, 1]);
    const other = await upstream.call("POST", path, { headers, body: {} });
    expect(await refusal(other)).toMatchObject({ status: 409, code: "IDEMPOTENCY_MISMATCH" });
  });

  it("is free where it lists the models", async () => {
    const upstream = await openedUpstream();
    for (const method of ["GET", "HEAD"]) {
      expect((await upstream.call(method, "/v2/own-endpoint/openai/v1/models")).status).toBe(200);
      expect((await upstream.call(method, `/v2/${text}/openai/v1/models`)).status).toBe(200);
    }
    expect(await upstream.jobs()).toEqual([]);
  });
});

describe("attack H5: a stream that never says what it cost", () => {
  const event = (content: string) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
  const sse = (body: BodyInit) => () => new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  const body = { ...chat, max_tokens: 100_000, stream: true };
  const inputBytes = JSON.stringify(body).length;
  const price = (tokens: number) => (Math.ceil(inputBytes / 4) * 10 + tokens * 10) / 1e6;

  async function charged(upstream: FakeUpstream) {
    const { jobs } = await meterOf(`user:user-${upstream.origin}`).jobs(
      `user:user-${upstream.origin}`,
      undefined,
      0,
      5,
    );
    return { usd: Number(jobs[0]?.costMicroUsd) / 1e6, isAssumed: jobs[0]?.isAssumed };
  }

  it.each([
    ["one chunk of 20,000 words", event("word ".repeat(20_000)), 25_000],
    ["many small chunks", `${event("é").repeat(50)}data: [DONE]\n\n`, 50],
    ["text that is no JSON", `data: ${"word ".repeat(400)}\n\n`, 500],
    ["reasoning and tools", event("").replace('"content":""', `"reasoning_content":"${"x".repeat(4000)}"`), 1000],
    ["no end of its last line", event("word").trimEnd(), 1],
    ["a usage that cannot be true", `${event("word")}data: {"choices":[],"usage":{"completion_tokens":-1}}\n\n`, 1],
    ["a usage of before its text", `data: {"usage":{"completion_tokens":0}}\n\n${event("x".repeat(400))}`, 100],
  ])("is charged for what it handed out, as assumed: %s", async (_name, events, tokens) => {
    const upstream = new FakeUpstream(sse(events));
    const answer = await upstream.call("POST", chatOf(text), { body });
    expect(answer.status).toBe(200);
    expect(await charged(upstream)).toEqual({ usd: price(tokens), isAssumed: true });
  });

  it("is charged at most what was reserved", async () => {
    const upstream = new FakeUpstream(sse(event("word ".repeat(20_000))));
    await upstream.call("POST", chatOf(text), { body: { ...body, max_tokens: 5 } });
    const [job] = await upstream.jobs();
    expect(job?.costUsd).toBe(job?.reservedUsd);
  });

  it("is asked for its usage, whatever the caller said of it", async () => {
    for (const options of [undefined, null, {}, { include_usage: false }, { include_usage: true, more: 1 }]) {
      const upstream = new FakeUpstream(sse(event("hi")));
      await upstream.call("POST", chatOf(text), { body: { ...body, stream_options: options } });
      expect(JSON.parse(upstream.seen[0]?.body ?? "")).toMatchObject({
        stream_options: { ...options, include_usage: true },
      });
    }
    const upstream = new FakeUpstream(done);
    await upstream.call("POST", chatOf(text), { body: chat });
    expect(JSON.parse(upstream.seen[0]?.body ?? "")).toEqual(chat);
  });

  describe("in a large body is asked for its usage", () => {
    const asked = { include_usage: true };
    const carriers = [(body: string) => body, chunked];
    const first = (member: string) => JSON.stringify(large({ stream: true })).replace(/^\{/, `{${member},`);
    const last = (member: string) => JSON.stringify(large({ stream: true })).replace(/\}$/, `,${member}}`);
    async function relayed(body: string, carry: (body: string) => string | ReadableStream) {
      const upstream = new FakeUpstream(sse(event("hi")));
      expect((await upstream.call("POST", chatOf(text), { body: carry(body) })).status).toBe(200);
      return String(upstream.seen.at(-1)?.body);
    }

    it("where the caller has said nothing of it", async () => {
      for (const carry of carriers) {
        const sent = await relayed(JSON.stringify(large({ stream: true })), carry);
        expect(JSON.parse(sent)).toEqual(large({ stream: true, stream_options: asked }));
        const whole = await relayed(JSON.stringify(large({ stream: false })), carry);
        expect(JSON.parse(whole)).toEqual(large({ stream: false }));
      }
    });

    it.each([
      ["{}", asked],
      ["null", asked],
      [`{"include_usage":false}`, asked],
      [`{"include_usage":null}`, asked],
      [
        String.raw`{"include_us\u0061ge":false,"continuous_usage_stats":true}`,
        { ...asked, continuous_usage_stats: true },
      ],
      [`{"include_usage":true}`, asked],
      [`{"pad":"${"x".repeat(300)}"}`, asked],
    ])("whatever the caller said of it: %s", async (options, expected) => {
      const names = [`"stream_options"`, String.raw`"stream\u005foptions"`, String.raw`"\u0073tream_option\u0073"`];
      for (const member of names.map((name) => `${name} : ${options}`)) {
        for (const body of [first(member), last(member)]) {
          for (const carry of carriers) {
            const sent = await relayed(body, carry);
            expect((JSON.parse(sent) as object as { stream_options: object }).stream_options).toEqual(expected);
            // No parser, whichever of two members it takes, finds the caller's.
            expect(sent.match(/"(stream(_|\\u005f)options|\\u0073tream_option\\u0073)"/g)).toHaveLength(1);
          }
        }
      }
    });

    it.each([
      ["written twice", `"stream_options":{"include_usage":true},"stream_options":{"include_usage":false}`],
      ["that say a member twice", `"stream_options":{"include_usage":true,"include_usage":false}`],
      ["that are none", `"stream_options":7`],
      ["too large to be read", `"stream_options":{"include_usage":false,"pad":"${"x".repeat(5000)}"}`],
    ])("or refused with options %s", async (_name, member) => {
      const upstream = new FakeUpstream(sse(event("hi")));
      for (const body of [first(member), last(member)]) {
        const answer = await upstream.call("POST", chatOf(text), { body });
        expect(await refusal(answer)).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
      }
      expect(upstream.seen).toEqual([]);
    });

    it("or refused where whether it streams is too large to be read", async () => {
      const upstream = new FakeUpstream(sse(event("hi")));
      const body = JSON.stringify(large()).replace(/\}$/, `,"stream":1.${"0".repeat(5000)}}`);
      const answer = await upstream.call("POST", chatOf(text), { body });
      expect(await refusal(answer)).toEqual({ status: 400, code: "INVALID_REQUEST", param: "stream" });
      expect(upstream.seen).toEqual([]);
    });

    it("or else paid for what it handed out", async () => {
      const upstream = new FakeUpstream(sse(event("word ".repeat(2000))));
      const body = { ...large({ stream: true, max_tokens: 100_000, stream_options: { include_usage: false } }) };
      await upstream.call("POST", chatOf(text), { body });
      const { usd, isAssumed } = await charged(upstream);
      expect(isAssumed).toBe(true);
      expect(usd).toBeGreaterThanOrEqual((2500 * 10) / 1e6);
    });
  });

  it("that its caller leaves early is charged for what it had given until then", async () => {
    const source = new ReadableStream({
      type: "bytes",
      start: (controller) => controller.enqueue(new TextEncoder().encode(event("word").repeat(5))),
      pull: () => new Promise(() => {}),
    });
    const upstream = new FakeUpstream(sse(source));
    const caller = await leavingCaller(upstream, chatOf(text), body);
    expect(await caller.read()).toContain("word");
    await caller.leave();
    expect(await charged(upstream)).toEqual({ usd: price(5), isAssumed: true });
  });
});

it("attack H4: a caller that leaves before the answer is charged what was reserved: the upstream had the call", async () => {
  const asked = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const upstream = new FakeUpstream((_seen, request) => {
    asked.resolve();
    return new Promise((_, reject) => request.signal.addEventListener("abort", () => reject(new Error("aborted"))));
  });
  const answer = upstream.call("POST", chatOf(text), { body: chat, signal: leaving.signal });
  await asked.promise;
  leaving.abort();
  await answer;
  const [job] = await upstream.jobs();
  expect(job?.costUsd).toBe(job?.reservedUsd);
});
