// The worker protocol, as an unmodified worker speaks it: long polls, results in whatever content type, workers that vanish.
import { abortAllDurableObjects, evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../support/empty-storage.ts";
import { expectProblem } from "../support/problems.ts";
import { type Endpoint, endpoint, eventually, noon, pass, setTime } from "./support/endpoint.ts";

const model = "black-forest-labs-flux-1-dev";

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const take = (e: Endpoint, worker = "w1") => e.send("GET", `job-take/${worker}?gpu=none&job_in_progress=0`);
const held = (e: Endpoint) =>
  e
    .queue()
    .metrics()
    .then((metrics) => ("refused" in metrics ? [] : metrics.readyWorkers));

describe("a take", () => {
  it("hands over the request as it came, under our id", async () => {
    const e = endpoint();
    const request = {
      input: { prompt: "a cat" },
      policy: { lowPriority: true },
      s3Config: { bucketName: "b" },
      extra: [1],
    };
    const id = await e.submit({ id: "mine", ...request });
    const response = await take(e);
    expect([response.status, response.headers.get("Content-Type")]).toEqual([200, "application/json"]);
    expect(await response.json()).toEqual({ ...request, id });
  });

  it.each([10, 2 * 1024 * 1024])("attack H3: tells no worker where its end is told, with %i bytes", async (size) => {
    const e = endpoint();
    const webhook = "https://gateway.example.com/hooks/a-bearer-of-ours";
    await e.submit({ webhook, input: { text: "x".repeat(size) }, extra: 1 });
    const text = await (await take(e)).text();
    expect(text).not.toContain("hooks");
    expect(JSON.parse(text)).toMatchObject({ input: { text: "x".repeat(size) }, extra: 1 });
  });

  it("goes in the order of submission, whoever asks", async () => {
    const e = endpoint();
    const ids = [await e.submit(), await e.submit(), await e.submit()];
    expect([...(await e.take("w1")), ...(await e.take("w2")), ...(await e.take("w1"))]).toEqual(ids);
  });

  it("of a batch is a list, as long as there are jobs", async () => {
    const e = endpoint();
    const ids = [await e.submit(), await e.submit(), await e.submit()];
    const batch = await e.send("GET", "job-take-batch/w1?batch_size=2&job_in_progress=0");
    expect((await batch.json<{ id: string }[]>()).map(({ id }) => id)).toEqual(ids.slice(0, 2));
    await expectProblem(await e.send("GET", "job-take-batch/w1?batch_size=0"), "INVALID_REQUEST");
  });

  it("is held until a job comes, and the longest wait is served first", async () => {
    const e = endpoint();
    const first = take(e, "w1");
    await eventually(async () => expect(await held(e)).toEqual(["w1"]));
    const second = take(e, "w2");
    await eventually(async () => expect(await held(e)).toEqual(["w1", "w2"]));
    const ids = [await e.submit(), await e.submit()];
    const taken = await Promise.all([first, second].map(async (response) => (await response).json<{ id: string }>()));
    expect(taken.map(({ id }) => id)).toEqual(ids);
  });

  it("of the same worker is served by its newest call, since an older one may have lost its caller", async () => {
    const e = endpoint();
    const calls = ["old", "new"].map((ticket) => e.queue().take("w1", ticket, 1, 60_000));
    await eventually(async () => expect(await held(e)).toEqual(["w1"]));
    await e.submit();
    expect(await calls[1]).toHaveLength(1);
    await e.queue().leave("old");
    expect(await calls[0]).toEqual([]);
  });

  it("is asked again when the object restarts in the middle", async () => {
    const e = endpoint();
    const response = take(e);
    await eventually(async () => expect(await held(e)).toEqual(["w1"]));
    await abort(e);
    const id = await e.submit();
    expect(await (await response).json()).toMatchObject({ id });
  });

  it("whose worker left goes back without counting a retry, in its old place", async () => {
    const e = endpoint();
    const [first] = [await e.submit(), await e.submit()];
    await e.take("w1");
    await e.queue().giveBack("w1", [first]);
    expect(await e.get(`status/${first}`)).not.toHaveProperty("retries");
    expect(await e.take("w2")).toEqual([first]);
    expect(await e.get("health")).toMatchObject({ jobs: { retried: 0 } });
  });

  it("is nothing for a caller that left before", async () => {
    const e = endpoint();
    const call = e.queue().take("w1", "ticket", 1, 60_000);
    await eventually(async () => expect(await held(e)).toEqual(["w1"]));
    await e.queue().leave("ticket");
    expect(await call).toEqual([]);
    const id = await e.submit();
    expect(await e.take("w2")).toEqual([id]);
  });

  it.each(["a b", "sample:1", "a".repeat(129)])("by a worker called %j is refused", async (worker) => {
    await expectProblem(await take(endpoint(), encodeURIComponent(worker)), "INVALID_REQUEST");
  });
});

describe("a batch of large requests", () => {
  const text = "x".repeat(8 * 1024 * 1024);
  const batch = (e: Endpoint, worker = "w1") => e.send("GET", `job-take-batch/${worker}?batch_size=100`);

  it("attack: is no larger than a Worker's memory bears, and the next in line gets the rest", async () => {
    const e = endpoint();
    const ids = [await e.submit({ input: { text } }), await e.submit({ input: { text } })];
    const last = await e.submit({ input: { text } });
    const first = await (await batch(e)).json<{ id: string; input: { text: string } }[]>();
    expect(first.map(({ id, input }) => [id, input.text === text])).toEqual(ids.map((id) => [id, true]));
    expect(await (await batch(e, "w2")).json()).toMatchObject([{ id: last }]);
  });

  it("attack: that asks for more than it can carry keeps no other worker waiting", async () => {
    const e = endpoint();
    for (let n = 0; n < 3; n++) await e.submit({ input: { text } });
    await e.take("w3", 3);
    await e.take("w3", 3);
    const waiting = ["w1", "w2"].map((worker) => e.queue().take(worker, worker, 100, 60_000));
    await eventually(async () => expect(await held(e)).toEqual(["w3", "w1", "w2"]));
    pass(31_000);
    await e.ring();
    const taken = await Promise.all(waiting);
    expect(taken.map((jobs) => ("refused" in jobs ? 0 : jobs.length)).sort()).toEqual([1, 2]);
  });

  it.each([
    ["a control character", "\n"],
    ["a bad escape", "\\x41"],
    ["half a character", "\xff"],
  ])("attack: has nobody's text in it that is no JSON: %s late in a long string", async (_, flaw) => {
    const e = endpoint();
    const body = `${JSON.stringify({ input: { text: "x".repeat(2_000_000) } }).slice(0, -3)}${flaw}"}}`;
    const bytes = Uint8Array.from(body, (character) => character.charCodeAt(0));
    await expectProblem(await e.send("POST", "run", { body: bytes }), "INVALID_JSON");
    const id = await e.submit();
    expect(await (await batch(e)).json()).toMatchObject([{ id }]);
  });

  it("attack: that breaks off while it is read loses none of its jobs, and counts no try", async () => {
    const e = endpoint();
    const ids = [await e.submit(), await e.submit({ input: { text } })];
    await runInDurableObject(e.queue(), (_, { storage }) => storage.sql.exec("DELETE FROM payloads WHERE part = 1"));
    const answered = batch(e).then((response) => response.text());
    await expect(answered).rejects.toThrow();
    await eventually(async () => expect(await e.get("health")).toMatchObject({ jobs: { inQueue: 2, retried: 0 } }));
    expect((await e.get(`status/${ids[0]}`))["status"]).toBe("IN_QUEUE");
  });
});

/** The object dies in the middle of what it does, as in a deployment. */
async function abort(e: Endpoint): Promise<void> {
  await abortAllDurableObjects();
  await eventually(() => e.queue().health());
}

describe("a result", () => {
  const results: [string, unknown, object][] = [
    ["an output", { output: { a: 1 } }, { status: "COMPLETED", output: { a: 1 } }],
    ["an empty output", { output: null }, { status: "COMPLETED", output: null }],
    ["nothing at all", {}, { status: "COMPLETED" }],
    [
      "an error beside an output",
      { output: { a: 1 }, error: "broke" },
      { status: "FAILED", output: { a: 1 }, error: "broke" },
    ],
    ["an error as JSON text", { error: '{"error_type":"E"}' }, { status: "FAILED", error: '{"error_type":"E"}' }],
    ["an error that is an object", { error: { type: "E" } }, { status: "FAILED", error: '{"type":"E"}' }],
  ];
  it.each(results)("of %s", async (_, result, status) => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    expect((await e.done(id, result)).status).toBe(200);
    expect(await e.get(`status/${id}`)).toMatchObject({ ...status, workerId: "w1" });
  });

  it("replaces what was reported of the progress", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    await e.done(id, { status: "IN_PROGRESS", output: "50 %" });
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_PROGRESS", output: "50 %" });
    await e.done(id, {});
    const status = await e.get(`status/${id}`);
    expect(status).toMatchObject({ status: "COMPLETED" });
    expect(status).not.toHaveProperty("output");
  });

  it("as large as the limit is kept whole, and over it refused", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    const sized = (bytes: number) => ({ output: "x".repeat(bytes - 2) });
    await expectProblem(await e.done(id, sized(20 * 1024 ** 2 + 1)), "PAYLOAD_TOO_LARGE");
    expect((await e.done(id, sized(20 * 1024 ** 2))).status).toBe(200);
    const { output } = await e.read<{ output: string }>("GET", `status/${id}`);
    expect(output.length).toBe(20 * 1024 ** 2 - 2);
  });

  it("of a worker that asks to be restarted takes the worker away", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    expect(await held(e)).toEqual(["w1"]);
    await e.done(id, { output: 1, stopPod: true });
    expect(await held(e)).toEqual([]);
  });

  it.each([
    ["no JSON", "output=1", "INVALID_JSON"],
    ["no object", "[1]", "INVALID_REQUEST"],
  ] as const)("that is %s is refused", async (_, body, code) => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    await expectProblem(await e.send("POST", `job-done/w1/${id}`, { body }), code);
  });
});

describe("a stop", () => {
  it("is told once, for a job that was cancelled under its worker", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    const told = e.get("job-stop/w1");
    await e.post(`cancel/${id}`);
    expect(await told).toEqual({ jobsToStop: [id] });
    expect(await e.queue().stops("w1", "t", 1)).toEqual([]);
  });

  it.each<[string, (e: Endpoint, id: string) => Promise<unknown>]>([
    ["timed out", async (e) => e.ring()],
    ["was deleted by its ttl", async (e, id) => e.get(`status/${id}?ttl=10000`)],
  ])("is told for a job that %s", async (_, bring) => {
    const e = endpoint();
    const id = await e.submit({ input: {}, policy: { executionTimeout: 10_000 } });
    await e.take();
    pass(10_000);
    await bring(e, id);
    expect(await e.get("job-stop/w1")).toEqual({ jobsToStop: [id] });
  });

  it("is not told for a job that ended by its worker's own doing", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    await e.done(id);
    expect(await e.queue().stops("w1", "t", 1)).toEqual([]);
  });

  it("is told to a worker that pings with a job it does not hold, and not of one that it took again", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take("w1");
    pass(30_000);
    await e.ring();
    await e.ping("w1", id);
    expect(await e.take("w1")).toEqual([id]);
    expect(await e.queue().stops("w1", "t", 1)).toEqual([]);
    await e.ping("w1", id, "another");
    expect(await e.queue().stops("w1", "t", 1)).toEqual(["another"]);
  });

  it("is not swallowed by a call whose caller left", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    const gone = e.queue().stops("w1", "gone", 60_000);
    await eventually(async () => expect(await held(e)).toEqual(["w1"]));
    await e.queue().leave("gone");
    expect(await gone).toEqual([]);
    await e.post(`cancel/${id}`);
    expect(await e.queue().stops("w1", "t", 60_000)).toEqual([id]);
  });
});

/** The object sleeps, and its alarm wakes a new one. */
async function restartsAt(e: Endpoint, ms: number): Promise<void> {
  await e.queue().health();
  await evictDurableObject(e.queue());
  pass(ms);
  await e.ring();
}

describe("a worker", () => {
  it("that pings keeps its job; one that falls silent loses it once, then it failed", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take("w1");
    for (const _ of [1, 2, 3]) {
      pass(29_000);
      await e.ping("w1", id);
      await e.ring();
    }
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_PROGRESS" });
    pass(30_000);
    await e.ring();
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
    await e.take("w2");
    pass(30_000);
    await e.ring();
    const failed = { status: "FAILED", retries: 1, error: "job timed out after 1 retries" };
    expect(await e.get(`status/${id}`)).toMatchObject(failed);
    expect(await e.get("health")).toMatchObject({ jobs: { failed: 1, retried: 1, inProgress: 0, inQueue: 0 } });
  });

  it.each([
    ["streams", (e: Endpoint, id: string) => e.send("POST", `job-stream/w1/${id}`, { json: { output: 1 } })],
    ["reports", (e: Endpoint, id: string) => e.send("POST", `job-done/w1/${id}`, { json: { status: "IN_PROGRESS" } })],
  ])("that %s is no silent one", async (_, tell) => {
    const e = endpoint();
    const id = await e.submit();
    await e.take("w1");
    for (const _ of [1, 2]) {
      pass(29_000);
      expect((await tell(e, id)).status).toBe(200);
      await e.ring();
    }
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_PROGRESS" });
  });

  it("is given its time anew when the object restarts", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take("w1");
    pass(25_000);
    await evictDurableObject(e.queue());
    await e.get("health");
    pass(29_000);
    await e.ring();
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_PROGRESS" });
    expect((await e.done(id)).status).toBe(200);
  });

  it.each([1, 2])("that stays silent loses its %i jobs, however often the object restarts meanwhile", async (count) => {
    const e = endpoint();
    const ids = await Promise.all(Array.from({ length: count }, () => e.submit()));
    await e.take("w1", count);
    await restartsAt(e, 30_000);
    for (const id of ids) expect(await e.queue().status(id, null)).toMatchObject({ head: { status: "IN_PROGRESS" } });
    await restartsAt(e, 30_000);
    for (const id of ids) expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
  });

  it("that is heard after a restart has its full time again, at the next restart, too", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take("w1");
    for (const _ of [1, 2, 3]) {
      await restartsAt(e, 25_000);
      await e.ping("w1", id);
    }
    await restartsAt(e, 29_000);
    await restartsAt(e, 29_000);
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_PROGRESS" });
    await restartsAt(e, 1_000);
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
  });

  it("that says it works on nothing loses the job that never reached it", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take("w1");
    for (const _ of [1, 2]) {
      pass(10_000);
      await e.ping("w1");
    }
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_PROGRESS" });
    pass(10_000);
    await e.ping("w1");
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
  });

  it("makes the built-in ones pause, until it was not heard of for 30 s, whatever happens to the object", async () => {
    const e = endpoint(model);
    await e.ping("w1");
    const id = await e.submit({ input: { prompt: "a cat" } });
    expect(await e.get("health")).toMatchObject({ workers: { idle: 1, ready: 1, running: 0 } });
    await evictDurableObject(e.queue());
    pass(29_000);
    await e.ring();
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_QUEUE" });
    pass(1000);
    await e.ring();
    await eventually(async () => expect(await e.get(`status/${id}`)).toMatchObject({ status: "COMPLETED" }));
  });

  it("that comes new finds room where all others have long left", async () => {
    const e = endpoint();
    await runInDurableObject(e.queue(), (queue) => {
      for (let n = 0; n < 5000; n++) queue.ping(`old-${n}`, []);
      expect(queue.ping("new", [])).toMatchObject({ refused: "RATE_LIMITED" });
      expect(queue.ping("old-0", [])).toEqual({ ok: true });
    });
    pass(31_000);
    expect((await e.ping("new")).status).toBe(200);
  });

  it("that waits for a job gets it, however long it has waited, and no built-in one does", async () => {
    const e = endpoint(model);
    const response = take(e);
    await eventually(async () => expect(await held(e)).toEqual(["w1"]));
    pass(60_000);
    const id = await e.submit({ input: { prompt: "a cat" } });
    expect(await (await response).json()).toMatchObject({ id });
    expect(await e.get(`status/${id}`)).toMatchObject({ workerId: "w1" });
  });
});
