// OpenAI's routes through the gateway: whole answers and streams as they came, settled by what they say they cost.
import { describe, expect, it } from "vitest";
import { chunked, FakeUpstream, json, watchCanary } from "./fake-upstream.ts";

watchCanary();

const model = "cogito-671b-v2-1-fp8-dynamic";
const path = `/v2/${model}/openai/v1/chat/completions`;
const body = { model, messages: [{ role: "user", content: "x" }], max_tokens: 5 };
const tooMuch = JSON.stringify({ ...body, picture: "x".repeat(20 * 1024 * 1024) });
const chunk = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const word = chunk({ choices: [{ delta: { content: "é😀" } }] });
const stream = (...pieces: (string | Error)[]) => {
  const encoder = new TextEncoder();
  const source = new ReadableStream({
    type: "bytes",
    pull(controller) {
      const piece = pieces.shift();
      if (piece === undefined) return controller.close();
      if (piece instanceof Error) return controller.error(piece);
      controller.enqueue(encoder.encode(piece));
    },
  });
  return () => new Response(source, { headers: { "Content-Type": "text/event-stream; charset=utf-8" } });
};

async function chat(answer: () => Response, sent: unknown = body) {
  const upstream = new FakeUpstream(answer);
  const response = await upstream.call("POST", path, { body: sent });
  const [job] = await upstream.jobs();
  return { upstream, response, job };
}

describe("a chat", () => {
  it("is relayed whole, as it was sent, and settled at its cost", async () => {
    const answer = { object: "chat.completion", choices: [], cost: 0.000_12, usage: { prompt_tokens: 1 } };
    const { upstream, response, job } = await chat(() => json(answer));
    expect(await response.json()).toEqual(answer);
    expect(response.headers.get("X-Cost")).toBe("0.00012");
    expect(JSON.parse(upstream.seen[0]?.body ?? "")).toEqual(body);
    expect(upstream.seen[0]?.path).toBe(path);
    expect(job).toMatchObject({ status: "COMPLETED", costUsd: 0.000_12 });
  });

  it.each([
    ["of stated length", (text: string) => text],
    ["chunked", chunked],
  ])("with a large body, %s, is relayed as it came, and settled at its cost", async (_name, carried) => {
    const text = JSON.stringify({ ...body, picture: "x".repeat(3 * 1024 * 1024) });
    const { upstream, response, job } = await chat(() => json({ cost: 0.000_3 }), carried(text));
    expect(response.headers.get("X-Cost")).toBe("0.0003");
    expect(upstream.seen.map((seen) => seen.body.replace(/ *\}$/, "}") === text)).toEqual([true]);
    expect(job).toMatchObject({ status: "COMPLETED", costUsd: 0.000_3 });
  });

  it("with a body beyond the limit is cut off, and owes nothing", async () => {
    const { upstream, response, job } = await chat(() => json({}), chunked(tooMuch));
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { code: "PAYLOAD_TOO_LARGE" } });
    expect(job).toBeUndefined();
    expect(upstream.seen).toEqual([]);
  });

  it("with a large body that breaks off is refused, and owes nothing", async () => {
    const broken = new ReadableStream({
      type: "bytes",
      start: (controller) => controller.enqueue(new Uint8Array(300 * 1024)),
      pull: (controller) => controller.error(new Error("gone")),
    });
    const { response, job } = await chat(() => json({}), broken);
    expect(response.status).toBe(400);
    expect(job).toBeUndefined();
  });

  it("streams byte for byte, and settles at the last chunk's cost", async () => {
    const pieces = [
      ": hello\n\n",
      word.repeat(3),
      chunk({ usage: { prompt_tokens: 2 }, cost: 0.000_5 }),
      "data: [DONE]\n\n",
    ];
    const { response, job } = await chat(stream(...pieces));
    expect(response.headers.get("Content-Type")).toMatch(/^text\/event-stream/);
    expect(await response.text()).toBe(pieces.join(""));
    expect(job).toMatchObject({ costUsd: 0.000_5 });
  });

  it("is settled by its usage where no cost is said", async () => {
    const usage = { prompt_tokens: 100_000, completion_tokens: 100_000 };
    const { job } = await chat(stream(word, chunk({ choices: [], usage })));
    expect(job?.costUsd).toBeGreaterThan(0.01);
    expect(job?.status).toBe("COMPLETED");
  });

  it("that is cut is settled at what was seen", async () => {
    const words = word.repeat(100);
    const asked = { ...body, max_tokens: 100_000 };
    const few = await chat(stream(words, new Error("reset")), asked);
    const many = await chat(stream(...Array<string>(200).fill(words), new Error("reset")), asked);
    expect(await few.response.text()).toMatch(/^cut: /);
    expect(few.job?.costUsd).toBeGreaterThan(0);
    expect(Number(many.job?.costUsd)).toBeGreaterThan(20 * Number(few.job?.costUsd));
  });

  it.each([
    ["is refused", () => json({ error: { message: "too long" } }, 400), "UPSTREAM_INVALID", "too long", undefined],
    ["fails", () => json({ error: "x" }, 500), "UPSTREAM_FAILED", "x", { status: "FAILED", costUsd: 0 }],
    ["is garbage", () => new Response("{"), "UPSTREAM_BAD_TYPE", expect.any(String), { status: "COMPLETED" }],
  ])("that %s answers in OpenAI's shape, and is charged for what may have been made", async (...row) => {
    const [, answer, code, message, charged] = row;
    const { response, job } = await chat(answer);
    expect(await response.json()).toEqual({
      error: { message, code, type: expect.any(String), param: null, requestId: expect.any(String) },
    });
    if (charged) expect(job).toMatchObject(charged);
    else expect(job).toBeUndefined();
  });

  it.each([
    ["no JSON", "{", "INVALID_JSON"],
    ["a list", "[]", "INVALID_REQUEST"],
    ["a stream that is neither", `{"stream":"yes"}`, "INVALID_REQUEST"],
    ["more than may be sent", tooMuch, "PAYLOAD_TOO_LARGE"],
    ["much that is no JSON", "x".repeat(300 * 1024), "INVALID_JSON"],
    ["a large list", JSON.stringify(["x".repeat(300 * 1024)]), "INVALID_REQUEST"],
  ])("of %s never reaches the upstream", async (_name, sent, code) => {
    const { upstream, response, job } = await chat(() => json({}), sent);
    expect(await response.json()).toMatchObject({ error: { code } });
    expect(upstream.seen).toEqual([]);
    expect(job).toBeUndefined();
  });
});

it.each([
  "/openai/v1/../../run",
  "/openai/v2/models",
  "/openai/v1/a/b/c/d/e",
  "/openai/v1/%2e%2e/run",
  "/openai/v1/mod%2Fels",
  "/openai/v1/models%00",
])("calls nothing for %s", async (route) => {
  const upstream = new FakeUpstream(() => json({}));
  const response = await upstream.call("POST", `/v2/${model}${route}`, { body });
  expect([400, 404]).toContain(response.status);
  expect(upstream.seen).toEqual([]);
});
