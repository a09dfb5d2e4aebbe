// The job interface beyond its states: waiting, times, retention, lists and numbers.
import { abortAllDurableObjects, evictDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { jobSchema } from "../../src/contract/job.ts";
import { endpointSettingsSchema } from "../../src/platform/queue/endpoint-settings.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { expectProblem } from "../support/problems.ts";
import { endpoint, eventually, noon, pass, setTime } from "./support/endpoint.ts";

const model = "qwen3-32b-awq";
const minute = 60_000;

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const unused = { webhook: null, policy: null, s3Config: null };
const unusedWithin = { webhook: "", policy: { lowPriority: null, ttl: null }, s3Config: { bucketName: null } };

describe("a request", () => {
  it.each([
    ["small", 10, unused],
    ["small", 10, unusedWithin],
    ["large", 2 * 1024 ** 2, unused],
    ["large", 2 * 1024 ** 2, unusedWithin],
  ])("that is %s may have its optional members as null (%i bytes, %o)", async (_, size, members) => {
    const e = endpoint();
    const input = { text: "x".repeat(size) };
    const { id, status } = await e.post("run", { ...members, input });
    expect(status).toBe("IN_QUEUE");
    const job = await e.get("job-take/w1?gpu=none&job_in_progress=0");
    expect(job["id"] === id && JSON.stringify(job["input"]) === JSON.stringify(input)).toBe(true);
    expect((await e.done(String(id))).status).toBe(200);
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "COMPLETED" });
  });

  it.each(["run", "runsync", "openai/v1/chat/completions"])("to %s that is compressed is refused", async (path) => {
    const gzip = new CompressionStream("gzip");
    const body = new Response(new Blob([JSON.stringify({ input: {} })]).stream().pipeThrough(gzip));
    const headers = { "Content-Encoding": "gzip" };
    const response = await endpoint().send("POST", path, { body: await body.arrayBuffer(), headers });
    expect(response.status).toBe(415);
    expect(await response.text()).toContain("Content-Encoding");
    const plain = { json: { input: {} }, headers: { "Content-Encoding": "identity" } };
    expect((await endpoint().send("POST", "run", plain)).status).toBe(200);
  });
});

describe("runsync", () => {
  it("answers the moment the job ends, with all that clients ask of it", async () => {
    const answer = await endpoint(model).post("runsync", { input: { prompt: "hello" } });
    expect(jobSchema.parse(answer)).toMatchObject({
      id: expect.stringMatching(/^sync-[0-9a-f-]{36}-\w+$/),
      status: "COMPLETED",
      delayTime: 0,
      executionTime: 0,
      workerId: expect.any(String),
    });
  });

  it("answers with what is when the wait is over, and the job goes on", async () => {
    const e = endpoint();
    const answer = await e.post("runsync?wait=1000", { input: {} });
    expect(answer).toMatchObject({ status: "IN_QUEUE", id: expect.stringMatching(/^sync-/) });
    await e.take();
    await e.done(String(answer["id"]));
    expect(await e.get(`status-sync/${answer["id"]}`)).toMatchObject({ status: "COMPLETED", output: "made" });
  });

  it.each([
    [1000, minute],
    [90_000, 90_000],
    [300_000, 5 * minute],
  ])("that waits %i ms keeps its result for %i ms after the end", async (wait, keptMs) => {
    const e = endpoint();
    const held = e.post(`runsync?wait=${wait}`, { input: {} });
    await eventually(async () => expect(await e.get("health")).toMatchObject({ jobs: { inQueue: 1 } }));
    const [id] = await e.take();
    pass(10_000);
    await e.done(String(id));
    expect(await held).toMatchObject({ status: "COMPLETED" });
    pass(keptMs - 1);
    await e.ring();
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "COMPLETED" });
    pass(1);
    await expectProblem(await e.send("GET", `status/${id}`), "JOB_NOT_FOUND");
  });

  it("survives a restart of the object in the middle", async () => {
    const e = endpoint();
    const held = e.post("runsync", { input: {} });
    await eventually(async () => expect(await e.get("health")).toMatchObject({ jobs: { inQueue: 1 } }));
    await abortAllDurableObjects();
    await eventually(() => e.queue().health());
    const [id] = await e.take();
    await e.done(String(id));
    expect(await held).toMatchObject({ id, status: "COMPLETED" });
  });
});

describe("a time", () => {
  it("is counted apart for waiting and for executing", async () => {
    const e = endpoint();
    const id = await e.submit();
    pass(3000);
    expect(await e.get(`status/${id}`)).toMatchObject({ delayTime: 3000 });
    await e.take();
    pass(5000);
    await e.done(id);
    pass(7000);
    expect(await e.get(`status/${id}`)).toMatchObject({ delayTime: 3000, executionTime: 5000 });
  });

  it("to execute is the job's own, else the endpoint's, and is not counted while it waits", async () => {
    const e = endpoint();
    await e.queue().configure(endpointSettingsSchema.parse({ executionTimeoutMs: 20_000 }));
    const [own, other] = [await e.submit({ input: {}, policy: { executionTimeout: 10_000 } }), await e.submit()];
    pass(3_600_000);
    await e.ring();
    await e.take("w1", 2);
    pass(10_000);
    await e.ring();
    expect(await e.get(`status/${own}`)).toMatchObject({ status: "TIMED_OUT", error: "executionTimeout exceeded" });
    expect(await e.get(`status/${other}`)).toMatchObject({ status: "IN_PROGRESS" });
    pass(10_000);
    expect(await e.get(`status/${other}`)).toMatchObject({ status: "TIMED_OUT" });
  });

  it("that the endpoint allows counts for jobs that run when it is changed", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    await e.queue().configure(endpointSettingsSchema.parse({ executionTimeoutMs: 5000 }));
    pass(5000);
    await e.ring();
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "TIMED_OUT" });
  });

  it("to live is counted from submission when status sets it", async () => {
    const e = endpoint();
    const id = await e.submit({ input: {}, policy: { ttl: 20_000 } });
    pass(15_000);
    expect(await e.get(`status/${id}?ttl=60000`)).toMatchObject({ status: "IN_QUEUE" });
    pass(44_999);
    await e.ring();
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_QUEUE" });
    pass(1);
    await e.ring();
    await expectProblem(await e.send("GET", `status/${id}`), "JOB_NOT_FOUND");
  });

  it("that nobody rang for is heeded by whoever looks first", async () => {
    const e = endpoint();
    const [late, next] = [await e.submit({ input: {}, policy: { ttl: 10_000 } }), await e.submit()];
    pass(10_000);
    expect(await e.take()).toEqual([next]);
    await expectProblem(await e.send("POST", `cancel/${late}`), "JOB_NOT_FOUND");
    expect(await e.get("requests")).toMatchObject({ total: 1 });
  });
});

describe("a retry", () => {
  it("runs the original input again, without the output that was, under the same id", async () => {
    const e = endpoint();
    const id = await e.submit({ input: { n: 1 } });
    await e.take();
    await e.chunk(id, "old");
    await e.done(id, { output: "half", error: "broke" });
    expect(await e.post(`retry/${id}`, {})).toEqual({ id, status: "IN_QUEUE" });
    const status = await e.get(`status/${id}`);
    expect([status["output"], status["error"], status["status"]]).toEqual([undefined, undefined, "IN_QUEUE"]);
    expect(await e.get("job-take/w1")).toMatchObject({ id, input: { n: 1 } });
    await e.done(id);
    expect(await e.get(`stream/${id}`)).toEqual({ status: "COMPLETED", stream: [] });
    expect(await e.get("health")).toMatchObject({ jobs: { completed: 1, failed: 1, retried: 1 } });
  });
});

describe("health", () => {
  it("counts what there is and what there was, and survives the object", async () => {
    const e = endpoint();
    const ids = [await e.submit(), await e.submit(), await e.submit(), await e.submit()];
    await e.take("w1", 3);
    await e.done(String(ids[0]));
    await e.done(String(ids[1]), { error: "broke" });
    const jobs = { completed: 1, failed: 1, inProgress: 1, inQueue: 1, retried: 0 };
    const workers = { idle: 0, initializing: 0, ready: 1, running: 1, throttled: 0, unhealthy: 0 };
    expect(await e.get("health")).toEqual({ jobs, workers });
    await e.done(String(ids[2]));
    pass(31 * minute);
    await evictDurableObject(e.queue());
    expect(await e.get("requests")).toMatchObject({ total: 1 });
    expect(await e.get("health")).toMatchObject({ jobs: { completed: 2, failed: 1, inProgress: 0, inQueue: 1 } });
  });

  it("counts the built-in workers, kept warm up to the least and never above the most", async () => {
    const e = endpoint(model);
    await e.queue().configure(endpointSettingsSchema.parse({ workersMin: 2, workersMax: 3 }));
    expect(await e.get("metrics")).toMatchObject({
      workers: { idle: 2, ready: 2, running: 0 },
      readyWorkers: [{}, {}].map(() => expect.any(String)),
    });
    const ids = await Promise.all([1, 2, 3, 4].map(() => e.submit({ input: { prompt: "[timeout]" } })));
    expect(await e.get("health")).toMatchObject({
      jobs: { inProgress: 3, inQueue: 1 },
      workers: { running: 3, idle: 0 },
    });
    await e.post(`cancel/${ids[0]}`);
    expect(await e.get("health")).toMatchObject({ jobs: { inProgress: 3, inQueue: 0 } });
    for (const id of ids) await e.post(`cancel/${id}`);
    expect(await e.get("health")).toMatchObject({ workers: { running: 0, idle: 3 } });
    pass(5000);
    expect(await e.get("health")).toMatchObject({ workers: { running: 0, idle: 2 } });
  });
});

describe("low priority", () => {
  it("starts no worker, and is run once one is there", async () => {
    const e = endpoint(model);
    await e.queue().configure(endpointSettingsSchema.parse({ workersMin: 0 }));
    const low = await e.submit({ input: { prompt: "low" }, policy: { lowPriority: true } });
    expect(await e.get(`status/${low}`)).toMatchObject({ status: "IN_QUEUE" });
    await e.submit({ input: { prompt: "high" } });
    await eventually(async () => expect(await e.get(`status/${low}`)).toMatchObject({ status: "COMPLETED" }));
  });
});

describe("requests", () => {
  it("lists the jobs by pages, newest first", async () => {
    const e = endpoint();
    const ids = [await e.submit(), await e.submit(), await e.submit()].reverse();
    const page = (offset: number, limit: number, hasMore: boolean) => ({
      requests: ids.slice(offset, offset + limit).map((id) => ({ id, status: "IN_QUEUE", delayTime: 0 })),
      total: 3,
      offset,
      limit,
      hasMore,
    });
    expect(await e.get("requests")).toEqual(page(0, 100, false));
    expect(await e.get("requests?limit=2")).toEqual(page(0, 2, true));
    expect(await e.get("requests?limit=2&offset=2")).toEqual(page(2, 2, false));
    expect(await e.get("requests?offset=9")).toEqual(page(9, 100, false));
  });
});

describe("the steering operations", () => {
  it.each([{}, { body: "" }, { json: {} }])("come with no body, an empty one, or {}: %j", async (sent) => {
    const e = endpoint();
    const id = await e.submit();
    const type = "application/json";
    expect(await e.read("POST", `cancel/${id}`, { ...sent, type })).toEqual({ id, status: "CANCELLED" });
    expect(await e.read("POST", "purge-queue", { ...sent, type })).toEqual({ removed: 0, status: "completed" });
  });

  it("wake whoever waits for the job", async () => {
    const e = endpoint();
    const held = [await e.submit(), await e.submit()].map((id) => [id, e.send("GET", `status-sync/${id}`)] as const);
    await eventually(async () => expect(await e.get("health")).toMatchObject({ jobs: { inQueue: 2 } }));
    await e.post(`cancel/${held[0]?.[0]}`);
    expect(await (await held[0]?.[1])?.json()).toMatchObject({ status: "CANCELLED" });
    await e.post("purge-queue");
    await expectProblem((await held[1]?.[1]) ?? Response.error(), "JOB_NOT_FOUND");
  });

  it("run no job again whose endpoint was retired", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    await e.done(id, { error: "broke" });
    await e.queue().retire();
    await expectProblem(await e.send("POST", `retry/${id}`), "ENDPOINT_NOT_FOUND");
  });

  it("an endpoint that is wiped is there no more", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e
      .queue()
      .wipe()
      .catch(() => {});
    await expectProblem(await e.send("GET", `status/${id}`), "ENDPOINT_NOT_FOUND");
    await expectProblem(await e.send("GET", "health"), "ENDPOINT_NOT_FOUND");
  });
});
