// Idempotency-Key through the front door: the same call is the same job, another is refused, a concurrent one waits.
import { describe, expect, it } from "vitest";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, prompt, watchCanary } from "./fake-upstream.ts";

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

  it("refuses a large body that differs in its length alone", async () => {
    const upstream = counting();
    const large = (tail: string) => `{"input":{"prompt":"p","image":"${"x".repeat(300_000)}"},"own":"${tail}"}`;
    const submit = (body: string) =>
      upstream.submit("run", body, { ...key, "Content-Length": String(new TextEncoder().encode(body).length) });
    await submit(large("a"));
    expect((await submit(large("a"))).status).toBe(200);
    await expectProblem(await submit(large("ab")), "IDEMPOTENCY_MISMATCH");
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
