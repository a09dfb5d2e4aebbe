// The contract's rates, row by row, through the front door; and what lifts them.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type RatedOperation, rates } from "../../src/contract/rates.ts";
import { endpointSettingsSchema } from "../../src/platform/queue/endpoint-settings.ts";
import { RateLimits, type RateVerdict } from "../../src/platform/queue/rate-limits.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { expectProblem } from "../support/problems.ts";
import { endpoint, eventually, noon, pass, setTime } from "./support/endpoint.ts";

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const operations = Object.keys(rates) as RatedOperation[];
const verdicts = (
  limits: RateLimits,
  operation: RatedOperation,
  count: number,
  now: number,
  workers = 0,
): RateVerdict[] => Array.from({ length: count }, () => limits.admit(operation, workers, 10, now));

describe.each(operations)("%s", (operation) => {
  const { requests, concurrent } = rates[operation];

  it("takes as many requests in ten seconds as the table says, and says when there is room again", () => {
    const limits = new RateLimits();
    expect(verdicts(limits, operation, requests, noon).every(({ allowed }) => allowed)).toBe(true);
    expect(limits.admit(operation, 0, 10, noon + 5000)).toMatchObject({ allowed: false, retryAfterSeconds: 5 });
    expect(limits.admit(operation, 0, 10, noon + 9900).allowed).toBe(false);
    expect(limits.admit(operation, 0, 10, noon + 10_000).allowed).toBe(true);
  });

  it("takes as many at once as the table says", () => {
    const limits = new RateLimits();
    const leave = Array.from({ length: Math.min(concurrent, 500) }, () => limits.enter(operation));
    const { allowed } = limits.admit(operation, 0, 10, noon);
    expect(allowed).toBe(concurrent > 500);
    leave[0]?.();
    expect(limits.admit(operation, 0, 10, noon).allowed).toBe(true);
  });

  it("is lifted by running workers, and never lowered", () => {
    const limits = new RateLimits();
    const workers = requests / 10 + 1;
    expect(verdicts(limits, operation, requests + 10, noon, workers).every(({ allowed }) => allowed)).toBe(true);
    expect(limits.admit(operation, workers, 10, noon).allowed).toBe(false);
  });
});

describe("the front door", () => {
  it("refuses the third purge in ten seconds, and takes it when it said", async () => {
    const e = endpoint();
    for (const _ of [1, 2]) expect((await e.send("POST", "purge-queue")).status).toBe(200);
    const response = await e.send("POST", "purge-queue");
    await expectProblem(response.clone(), "RATE_LIMITED");
    expect(response.headers.get("Retry-After")).toBe("10");
    pass(10_000);
    expect((await e.send("POST", "purge-queue")).status).toBe(200);
  });

  it("counts each operation by itself", async () => {
    const e = endpoint();
    for (const _ of [1, 2, 3]) await e.send("POST", "purge-queue");
    expect((await e.send("GET", "requests")).status).toBe(200);
  });

  it("lifts the limit by the workers that run, by the endpoint's own setting", async () => {
    const e = endpoint();
    await e.queue().configure(endpointSettingsSchema.parse({ requestsPerWorker: 3 }));
    await e.submit();
    await e.take();
    for (const _ of [1, 2, 3]) expect((await e.send("POST", "purge-queue")).status).toBe(200);
    await expectProblem(await e.send("POST", "purge-queue"), "RATE_LIMITED");
  });

  it("counts a held request until it is over", async () => {
    const e = endpoint();
    const id = await e.submit();
    const held = Array.from({ length: rates.status.concurrent }, (_, at) =>
      e.queue().wait(id, 60_000, `t${at}`, "status"),
    );
    await eventually(async () => expect(await e.queue().status(id, null)).toMatchObject({ refused: "RATE_LIMITED" }));
    await e.queue().leave("t0");
    await held[0];
    expect(await e.queue().status(id, null)).toHaveProperty("head");
    await e.post(`cancel/${id}`);
    await Promise.all(held);
  });

  const { concurrent } = rates.runsync;
  const submitSync = (e: ReturnType<typeof endpoint>, count: number, operation?: "openai") =>
    runInDurableObject(e.queue(), (queue) =>
      Array.from({ length: count }, () => {
        const id = crypto.randomUUID();
        return queue.submit({ ...submission(id), sync: true }, operation);
      }),
    );

  it.each(["runsync", "openai"] as const)(
    "attack: counts %s from its submit on, not from its wait",
    async (operation) => {
      const e = endpoint();
      const answers = await submitSync(e, concurrent + 50, operation === "openai" ? operation : undefined);
      expect(answers.filter((answer) => "refused" in answer)).toHaveLength(50);
      const [first] = answers;
      if (!first || "refused" in first) throw new Error("refused");
      await e.queue().wait(first.id, 0, "ticket", operation);
      const again = await submitSync(e, 2, operation === "openai" ? operation : undefined);
      expect(again).toMatchObject([{ id: expect.any(String) }, { refused: "RATE_LIMITED" }]);
    },
  );

  it("counts a submit whose wait never comes for a moment only", async () => {
    const e = endpoint();
    await submitSync(e, concurrent);
    pass(9_999);
    expect(await submitSync(e, 1)).toMatchObject([{ refused: "RATE_LIMITED" }]);
    pass(1);
    expect(await submitSync(e, 1)).toMatchObject([{ id: expect.any(String) }]);
  });

  it("gives a refused request's place back when the queue is full", async () => {
    const e = endpoint();
    await plantFull(e);
    for (let at = 0; at < rates.run.concurrent + 1; at++) {
      expect(await e.queue().submit(submission(`job-${at}`))).toMatchObject({ refused: "QUEUE_FULL" });
    }
    const response = await e.send("POST", "run", { json: { input: {} } });
    await expectProblem(response.clone(), "QUEUE_FULL");
    expect(response.headers.get("Retry-After")).toBe("10");
  });

  it("takes the chunks of a running job when the queue has its most jobs", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    await plantFull(e);
    expect((await e.chunk(id, "piece")).status).toBe(200);
    await e.done(id, { output: [] });
    expect(await e.get(`stream/${id}`)).toEqual({ status: "COMPLETED", stream: [{ output: "piece" }] });
  });
});

const mebibyte = 1024 * 1024;

/** As if jobs held all but so many bytes of what an endpoint may hold; of results that is half as much again. */
async function plantRoom(e: ReturnType<typeof endpoint>, bytes: number, bounds = 1): Promise<void> {
  await runInDurableObject(e.queue(), (_, { storage }) => {
    storage.sql.exec("UPDATE totals SET bytes = ?", bounds * 4 * 1024 * mebibyte - bytes);
  });
  await evictDurableObject(e.queue());
}

describe("attack: what is kept beside requests", () => {
  it.each([1000, 2 * mebibyte])(
    "as a result of %i bytes ends its job as FAILED where it has no room",
    async (bytes) => {
      const e = endpoint();
      const id = await e.submit();
      await e.take("w1");
      await plantRoom(e, 100, 1.5);
      expect((await e.done(id, { output: "x".repeat(bytes) })).status).toBe(200);
      expect(await e.get(`status/${id}`)).toMatchObject({ status: "FAILED", error: expect.stringMatching(/full/) });
      expect(await e.get(`status/${id}`)).not.toHaveProperty("output");
      expect(await runInDurableObject(e.queue(), (_, { storage }) => tables(storage.sql))).toEqual([1, 0]);
    },
  );

  it("as a result has room where waiting requests fill the bound", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take("w1");
    await plantRoom(e, 0);
    await e.done(id, { output: "x".repeat(1000) });
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "COMPLETED", output: "x".repeat(1000) });
  });

  it("as a report of progress is refused where it has no room, and its job goes on", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take("w1");
    await plantRoom(e, 100, 1.5);
    const report = { status: "IN_PROGRESS", output: "x".repeat(1000) };
    await expectProblem(await e.done(id, report), "QUEUE_FULL");
    expect((await e.done(id, {})).status).toBe(200);
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "COMPLETED" });
  });

  it("as a chunk is refused where it has no room", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take("w1");
    await plantRoom(e, -1);
    await expectProblem(await e.chunk(id, "piece"), "QUEUE_FULL");
  });

  it("as an upload counts while it flows, and after a restart", async () => {
    const e = endpoint();
    await e.queue().health();
    await plantRoom(e, 2 * mebibyte);
    const upload = await e.queue().upload("run", new Blob(["x".repeat(1.5 * mebibyte)]).stream());
    expect(upload).toMatchObject({ size: 1.5 * mebibyte });
    for (const restart of [async () => {}, () => evictDurableObject(e.queue())]) {
      await restart();
      const large = await e.send("POST", "run", { json: { input: { text: "x".repeat(0.8 * mebibyte) } } });
      await expectProblem(large, "QUEUE_FULL");
    }
    await e.queue().discard((upload as { upload: number }).upload);
    expect((await e.send("POST", "run", { json: { input: { text: "x".repeat(0.8 * mebibyte) } } })).status).toBe(200);
  });

  it("as an upload is cut where it has no room any more, and leaves nothing", async () => {
    const e = endpoint();
    await e.queue().health();
    await plantRoom(e, 2 * mebibyte);
    const answer = await e.send("POST", "run", { json: { input: { text: "x".repeat(4 * mebibyte) } } });
    await expectProblem(answer, "QUEUE_FULL");
    expect(await runInDurableObject(e.queue(), (_, { storage }) => tables(storage.sql))).toEqual([0, 0]);
  });
});

/** How many payloads there are, and how many of them are uploads. */
function tables(sql: SqlStorage): number[] {
  const count = (query: string) => sql.exec<{ count: number }>(query).one().count;
  return [count("SELECT COUNT(DISTINCT key) AS count FROM payloads"), count("SELECT COUNT(*) AS count FROM uploads")];
}

async function plantFull(e: ReturnType<typeof endpoint>): Promise<void> {
  await runInDurableObject(e.queue(), (_, { storage }) => {
    storage.sql.exec("UPDATE totals SET jobs = 250000");
  });
  await evictDurableObject(e.queue());
}

function submission(id: string) {
  const body = new TextEncoder().encode('{"input":{}}');
  return {
    id,
    sync: false,
    waitMs: 0,
    lowPriority: false,
    ttlMs: 60_000,
    executionTimeoutMs: null,
    webhook: null,
    origin: "https://sluice.test",
    body,
    inputFrom: 9,
    inputTo: 11,
  };
}
