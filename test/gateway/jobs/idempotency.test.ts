// Idempotency-Key through the front door: the same call is the same job, another is refused, a concurrent one waits.
import { describe, expect, it, vi } from "vitest";
import { expectProblem } from "../../support/problems.ts";
import { chunked, FakeUpstream, json, prompt, watchCanary } from "./fake-upstream.ts";

watchCanary();

const key = { "Idempotency-Key": "key-1" };
const other = { input: { prompt: "a tower" } };

function counting(): FakeUpstream {
  let count = 0;
  return new FakeUpstream(({ path }) =>
    json(path.includes("status-sync") ? done(path) : { id: `job-${++count}`, status: "IN_QUEUE" }),
  );
}
const done = (path: string) => ({ id: path.split("/").at(-1), status: "COMPLETED", output: { cost: 0.001 } });

describe("an idempotency key", () => {
  it("gives the same handle to the same body, and calls the upstream once", async () => {
    const upstream = counting();
    const first = await (await upstream.submit("run", prompt, key)).json<{ id: string }>();
    const again = await (await upstream.submit("run", prompt, key)).json<{ id: string }>();
    expect(again).toEqual({ id: first.id, status: "IN_QUEUE" });
    expect(upstream.seen).toHaveLength(1);
    expect(await upstream.jobs()).toHaveLength(1);
  });

  it("waits for the same job where the call was runsync", async () => {
    const upstream = counting();
    const first = await (await upstream.submit("runsync", prompt, key)).json<{ id: string }>();
    const again = await (await upstream.submit("runsync", prompt, key)).json<{ id: string; status: string }>();
    expect(again).toMatchObject({ id: first.id, status: "COMPLETED" });
    expect(upstream.seen.map(({ method }) => method)).toEqual(["POST", "GET"]);
  });

  it.each([
    ["another body", "run", other],
    ["another operation", "runsync", prompt],
  ])("refuses %s", async (_name, operation, body) => {
    const upstream = counting();
    await upstream.submit("run", prompt, key);
    await expectProblem(await upstream.submit(operation, body, key), "IDEMPOTENCY_MISMATCH");
    expect(upstream.seen).toHaveLength(1);
  });

  it("is another user's own", async () => {
    const upstream = counting();
    const first = await (await upstream.submit("run", prompt, key)).json<{ id: string }>();
    const asEve = { ...key, Authorization: `Bearer ${await upstream.token("eve")}` };
    const second = await (await upstream.submit("run", other, asEve)).json<{ id: string }>();
    expect(second.id).not.toBe(first.id);
  });

  it("tells a concurrent call to come back", async () => {
    const held = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const upstream = new FakeUpstream(async () => {
      asked.resolve();
      await held.promise;
      return json({ id: "job-1", status: "IN_QUEUE" });
    });
    const first = upstream.submit("run", prompt, key);
    await asked.promise;
    const second = await upstream.submit("run", prompt, key);
    expect(second.headers.get("Retry-After")).toBe("1");
    await expectProblem(second, "IN_PROGRESS");
    held.resolve();
    expect((await first).status).toBe(200);
  });

  it("is free again where the upstream did not take the job", async () => {
    const upstream = new FakeUpstream(() => json({ error: "no" }, 400));
    await expectProblem(await upstream.submit("run", prompt, key), "UPSTREAM_INVALID");
    upstream.answer = () => json({ id: "job-1", status: "IN_QUEUE" });
    expect((await upstream.submit("run", prompt, key)).status).toBe(200);
  });

  it.each([
    ["empty", ""],
    ["too long", "k".repeat(256)],
    ["with a space", "a b"],
  ])("that is %s is refused", async (_name, value) => {
    const upstream = counting();
    await expectProblem(await upstream.submit("run", prompt, { "Idempotency-Key": value }), "INVALID_REQUEST");
  });
});

/** Bodies above what is held whole: alike for 300 KB, then what the test wants. */
const large = (tail = "") => `{"input":{"prompt":"p","image":"${"x".repeat(300 * 1024)}${tail}"}}`;
const sent = (body: string) => new TextEncoder().encode(body);
describe("an idempotency key of a large body", () => {
  it.each([
    ["stated", sent, sent],
    ["not stated", chunked, chunked],
    ["stated once", sent, chunked],
  ])("gives the same handle to the same bytes, their length %s", async (_name, first, again) => {
    const upstream = counting();
    const made = await (await upstream.submit("run", first(large()), key)).json<{ id: string }>();
    expect(await (await upstream.submit("run", again(large()), key)).json()).toEqual({
      id: made.id,
      status: "IN_QUEUE",
    });
    expect(upstream.seen).toHaveLength(1);
    expect(await upstream.jobs()).toHaveLength(1);
  });

  it("is for the bytes as the client sent them, a webhook of its own among them", async () => {
    const upstream = counting();
    const body = (path: string) => large().replace("{", `{"webhook":"https://hooks.example.org/${path}",`);
    expect((await upstream.submit("run", body("a"), key)).status).toBe(200);
    expect((await upstream.submit("run", body("a"), key)).status).toBe(200);
    await expectProblem(await upstream.submit("run", body("b"), key), "IDEMPOTENCY_MISMATCH");
  });

  it.each([
    ["one byte at the end", large("a"), large("b")],
    ["its length", large("a"), large("ab")],
    ["its beginning", large(), large().replace("p", "q")],
    ["being small", large(), JSON.stringify(prompt)],
  ])("refuses a body that differs in %s", async (_name, body, another) => {
    const upstream = counting();
    expect((await upstream.submit("run", body, key)).status).toBe(200);
    await expectProblem(await upstream.submit("run", another, key), "IDEMPOTENCY_MISMATCH");
    await expectProblem(await upstream.submit("run", chunked(another), key), "IDEMPOTENCY_MISMATCH");
    expect(upstream.seen).toHaveLength(1);
    expect(await upstream.jobs()).toHaveLength(1);
  });

  it("reads no further than the limit to compare", async () => {
    const upstream = counting();
    await upstream.submit("run", large(), key);
    const endless = chunked(large("x".repeat(10 * 1024 * 1024)));
    await expectProblem(await upstream.submit("run", endless, key), "PAYLOAD_TOO_LARGE");
  });

  it("tells a concurrent call to come back, unread", async () => {
    const upstream = counting();
    const passing = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const bytes = sent(large());
    const slow = new ReadableStream({
      type: "bytes",
      async start(controller) {
        controller.enqueue(bytes.slice(0, 280 * 1024));
        begun.resolve();
        await passing.promise;
        controller.enqueue(bytes.slice(280 * 1024));
        controller.close();
      },
    });
    const first = upstream.submit("run", slow, key);
    await begun.promise;
    await vi.waitFor(async () => expect(await upstream.jobs()).toHaveLength(1));
    await expectProblem(await upstream.submit("run", large("other"), key), "IN_PROGRESS");
    passing.resolve();
    expect((await first).status).toBe(200);
    expect(upstream.seen).toHaveLength(1);
  });

  it.each([
    ["is no JSON", `${large()}}`, "INVALID_JSON"],
    ["states a policy out of range", large().replace("{", `{"policy":{"ttl":1},`), "INVALID_REQUEST"],
  ] as const)("is free again where its body %s", async (_name, body, code) => {
    const upstream = counting();
    await expectProblem(await upstream.submit("run", body, key), code);
    expect((await upstream.submit("run", large("mended"), key)).status).toBe(200);
    expect(await upstream.jobs()).toHaveLength(1);
  });
});
