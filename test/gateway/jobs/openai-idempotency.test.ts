// Idempotency-Key under openai/: the same call is answered as the first one was, and the upstream never has it twice.
import { afterEach, describe, expect, it, vi } from "vitest";
import { UserMeter } from "../../../src/gateway/quota/user-meter.ts";
import { flowing } from "../../platform/fake-workers.ts";
import { chunked, FakeUpstream, json, leavingCaller, mintToken, watchCanary } from "./fake-upstream.ts";

watchCanary();
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const model = "cogito-671b-v2-1-fp8-dynamic";
const path = `/v2/${model}/openai/v1/chat/completions`;
const body = { model, messages: [{ role: "user", content: "hi" }], max_tokens: 50 };
const headers = { "Idempotency-Key": "key-1" };
const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const word = event({ choices: [{ index: 0, delta: { content: "word " } }] });
const sse = (events: BodyInit) => new Response(events, { headers: { "Content-Type": "text/event-stream" } });
const ask = (upstream: FakeUpstream, more: object = {}) =>
  upstream.call("POST", path, { headers, body: { ...body, ...more } });

async function expectConflict(response: Response, code: string): Promise<void> {
  expect(response.status).toBe(409);
  expect(await response.json()).toMatchObject({ error: { code, type: "invalid_request_error" } });
}

/** An upstream that answers as often as it is asked, each time with something else. */
const counting = () => {
  let count = 0;
  return new FakeUpstream(() => json({ object: "chat.completion", choices: [], cost: 0.000_01, count: ++count }));
};

describe("attack M9: the same call with the same key", () => {
  it("is answered as the first one was, charged once, and sent once", async () => {
    const upstream = counting();
    const answers = [await ask(upstream), await ask(upstream), await ask(upstream)];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await Promise.all(answers.map((answer) => answer.json()))).toMatchObject([
      { count: 1 },
      { count: 1 },
      { count: 1 },
    ]);
    expect(upstream.seen).toHaveLength(1);
    expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.000_01 }]);
  });

  it("has its stream replayed, as events", async () => {
    const events = `${word.repeat(3)}${event({ choices: [], usage: { completion_tokens: 3 } })}data: [DONE]\n\n`;
    const upstream = new FakeUpstream(() => sse(events));
    await ask(upstream, { stream: true });
    const again = await ask(upstream, { stream: true });
    expect(again.headers.get("Content-Type")).toMatch(/^text\/event-stream/);
    expect(await again.text()).toBe(events);
    expect(upstream.seen).toHaveLength(1);
    expect(await upstream.jobs()).toHaveLength(1);
  });

  it("is told to come back while the first one runs", async () => {
    const held = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const upstream = new FakeUpstream(async () => {
      asked.resolve();
      await held.promise;
      return json({ choices: [], cost: 0 });
    });
    const first = ask(upstream);
    await asked.promise;
    const second = await ask(upstream);
    expect(second.headers.get("Retry-After")).toBe("1");
    await expectConflict(second, "IN_PROGRESS");
    held.resolve();
    expect((await first).status).toBe(200);
    expect((await ask(upstream)).status).toBe(200);
    expect(upstream.seen).toHaveLength(1);
  });

  it.each([
    ["whole", () => json({ choices: [], cost: 0, text: "x".repeat(1024 * 1024) })],
    ["streamed", () => sse(word.repeat(30_000))],
  ])("is refused where the answer was too large to keep: %s", async (_name, answer) => {
    const upstream = new FakeUpstream(answer);
    expect((await ask(upstream)).status).toBe(200);
    const again = await ask(upstream);
    expect(again.headers.get("X-Should-Retry")).toBe("false");
    await expectConflict(again, "ANSWER_NOT_KEPT");
    expect(upstream.seen).toHaveLength(1);
  });

  it("is refused where the stream broke off, since nobody has its end", async () => {
    const pieces = [word, new Error("reset")];
    const source = new ReadableStream({
      type: "bytes",
      pull(controller) {
        const piece = pieces.shift();
        if (piece instanceof Error) controller.error(piece);
        else controller.enqueue(new TextEncoder().encode(piece));
      },
    });
    const upstream = new FakeUpstream(() => sse(source));
    await ask(upstream, { stream: true });
    await expectConflict(await ask(upstream, { stream: true }), "ANSWER_NOT_KEPT");
    expect(upstream.seen).toHaveLength(1);
  });

  it("is told the same failure again", async () => {
    const upstream = new FakeUpstream(() => json({ error: "out of memory" }, 500));
    const failures = [await ask(upstream), await ask(upstream)];
    expect(failures.map(({ status }) => status)).toEqual([502, 502]);
    const [first, second] = await Promise.all(failures.map((answer) => answer.json()));
    expect(second).toEqual(first);
    expect(upstream.seen).toHaveLength(1);
    expect(await upstream.jobs()).toMatchObject([{ status: "FAILED", costUsd: 0 }]);
  });

  it("is told the same failure again where nobody knows whether the upstream had the call, and costs nothing", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const upstream = new FakeUpstream(() => {
      throw new Error("Network connection lost.");
    });
    const first = await ask(upstream);
    expect(first.status).toBe(502);
    await expectConflict(await ask(upstream), "IN_PROGRESS");
    vi.setSystemTime(Date.now() + 61_000);
    const again = await ask(upstream);
    expect([again.status, await again.json()]).toEqual([502, await first.json()]);
    expect(upstream.seen).toHaveLength(1);
    expect(await upstream.jobs()).toMatchObject([{ costUsd: 0 }]);
  });

  it("is sent anew where the upstream never had the first one", async () => {
    const upstream = new FakeUpstream(() => json({ error: "too long" }, 400));
    expect((await ask(upstream)).status).toBe(400);
    upstream.answer = () => json({ choices: [], cost: 0 });
    expect((await ask(upstream)).status).toBe(200);
    expect(upstream.seen).toHaveLength(2);
  });
});

describe("a key whose first caller", () => {
  it("left in the middle of a stream stands for the whole answer", async () => {
    const goOn = Promise.withResolvers<void>();
    const encode = (text: string) => new TextEncoder().encode(text);
    const source = new ReadableStream({
      type: "bytes",
      start: (controller) => controller.enqueue(encode(word)),
      async pull(controller) {
        await goOn.promise;
        controller.enqueue(encode(`${word}data: [DONE]\n\n`));
        controller.close();
      },
    });
    const upstream = new FakeUpstream(() => sse(source));
    const caller = await leavingCaller(upstream, path, { ...body, stream: true }, headers);
    expect(await caller.read()).toBe(word);
    const left = caller.leave();
    await expectConflict(await ask(upstream, { stream: true }), "IN_PROGRESS");
    goOn.resolve();
    await left;
    expect(await (await ask(upstream, { stream: true })).text()).toBe(`${word}${word}data: [DONE]\n\n`);
    expect(upstream.seen).toHaveLength(1);
  });

  it("was lost with its isolate starts nothing anew, neither soon nor after the call's longest time", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const asked = Promise.withResolvers<void>();
    const never = Promise.withResolvers<Response>();
    const upstream = new FakeUpstream(() => {
      asked.resolve();
      return never.promise;
    });
    const lost = ask(upstream);
    await asked.promise;
    await expectConflict(await ask(upstream), "IN_PROGRESS");
    for (const hours of [0.5, 23]) {
      vi.setSystemTime(Date.now() + hours * 60 * 60 * 1000);
      const key = await mintToken(upstream.env, { user: `user-${upstream.origin}`, plan: "unlimited" });
      await expectConflict(await upstream.call("POST", path, { headers, body, key }), "ANSWER_NOT_KEPT");
    }
    expect(upstream.seen).toHaveLength(1);
    never.resolve(json({ choices: [], cost: 0 }));
    await lost;
  });

  it("streams for longer than an answer may take to begin, and keeps its place and its key until its end", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { setInterval } = globalThis;
    const hurried = (act: () => void) => setInterval(act, 1);
    vi.spyOn(globalThis, "setInterval").mockImplementation(hurried as typeof setInterval);
    const settled = vi.spyOn(UserMeter.prototype, "settle");
    const goOn = Promise.withResolvers<void>();
    const source = flowing();
    void source
      .write(word)
      .then(() => goOn.promise)
      .then(() => source.write(word))
      .then(() => source.writer.close());
    const upstream = new FakeUpstream(() => sse(source.readable));
    const rules = [{ unit: "jobs", limit: 1 }];
    const key = await mintToken(upstream.env, { user: `long-${upstream.origin}`, plan: "unlimited", rules });
    const again = (more: Record<string, string>) =>
      upstream.call("POST", path, { headers: more, body: { ...body, stream: true }, key });
    const first = again(headers);
    for (let minutes = 0; minutes < 12; minutes += 4) {
      vi.setSystemTime(Date.now() + 4 * 60_000);
      const told = settled.mock.calls.length;
      await vi.waitFor(() => expect(settled.mock.calls.length).toBeGreaterThan(told + 1));
    }
    expect((await again({})).status).toBe(429);
    await expectConflict(await again(headers), "IN_PROGRESS");
    goOn.resolve();
    expect(await (await first).text()).toBe(word + word);
    expect((await again(headers)).status).toBe(200);
    expect(upstream.seen).toHaveLength(1);
  });

  it("had an answer that KV did not take starts nothing anew", async () => {
    const away = () => Promise.reject(new Error("KV is away"));
    const none = async () => ({ value: null, metadata: null });
    const upstream = new FakeUpstream(() => json({ choices: [], cost: 0 }), {
      IMAGES: { put: away, getWithMetadata: none },
    });
    expect((await ask(upstream)).status).toBe(200);
    await expectConflict(await ask(upstream), "IN_PROGRESS");
    expect(upstream.seen).toHaveLength(1);
  });
});

describe("a key that was used", () => {
  it.each([
    ["another body", path, { ...body, max_tokens: 51 }],
    ["another model", path.replace(model, "gpt-oss-120b"), body],
  ])("is refused with %s", async (_name, at, other) => {
    const upstream = counting();
    await ask(upstream);
    await expectConflict(await upstream.call("POST", at, { headers, body: other }), "IDEMPOTENCY_MISMATCH");
    expect(upstream.seen).toHaveLength(1);
  });

  it("is another user's own", async () => {
    const upstream = counting();
    await ask(upstream);
    const eve = await upstream.token("eve");
    const hers = await upstream.call("POST", path, { headers, key: eve, body });
    expect(await hers.json()).toMatchObject({ count: 2 });
  });

  it.each([
    ["stated", (text: string) => text],
    ["chunked", chunked],
  ])("stands for a large body as a whole, its length %s", async (_name, carried) => {
    const upstream = counting();
    const large = (tail: string) =>
      JSON.stringify({ ...body, messages: [{ role: "user", content: "x".repeat(300 * 1024) + tail }] });
    const call = (text: string) => upstream.call("POST", path, { headers, body: carried(text) });
    expect(await (await call(large("a"))).json()).toMatchObject({ count: 1 });
    expect(await (await call(large("a"))).json()).toMatchObject({ count: 1 });
    await expectConflict(await call(large("b")), "IDEMPOTENCY_MISMATCH");
    expect(upstream.seen).toHaveLength(1);
  });

  it.each([
    ["empty", ""],
    ["with a space", "a b"],
    ["too long", "k".repeat(256)],
  ])("is refused where it is no key: %s", async (_name, key) => {
    const upstream = counting();
    const answer = await upstream.call("POST", path, { headers: { "Idempotency-Key": key }, body });
    expect(await answer.json()).toMatchObject({ error: { code: "INVALID_REQUEST" } });
    expect(upstream.seen).toEqual([]);
  });
});
