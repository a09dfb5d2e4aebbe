// An alarm that comes late finds several times over at once: each job is moved once, and what is counted stays true.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { defaultEndpointSettings, endpointSettingsSchema } from "../../src/platform/queue/endpoint-settings.ts";
import { JobStore } from "../../src/platform/queue/job-store.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { expectProblem } from "../support/problems.ts";
import { type Endpoint, endpoint, eventually, noon, pass, setTime } from "./support/endpoint.ts";

const model = "qwen3-32b-awq";
const ttl = 10_000;

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

/** What the object keeps of its jobs, and what is true. */
function counted(e: Endpoint): Promise<{ kept: object; rows: object }> {
  return runInDurableObject(e.queue(), (_, { storage }) => {
    const one = (query: string) => storage.sql.exec(query).one();
    return {
      kept: one("SELECT jobs, waiting, running FROM totals"),
      rows: one(
        `SELECT COUNT(*) AS jobs, COUNT(*) FILTER (WHERE status = 'IN_QUEUE') AS waiting,
           COUNT(*) FILTER (WHERE status = 'IN_PROGRESS') AS running FROM jobs`,
      ),
    };
  });
}

it("attack: moves no job that a listener's question has moved before, and the next job starts", async () => {
  const e = endpoint(model);
  await e.queue().configure(endpointSettingsSchema.parse({ workersMin: 0, workersMax: 1 }));
  const runs = await e.submit({ input: { prompt: "[timeout]" }, policy: { ttl, executionTimeout: 9_950 } });
  const waits = await e.submit({ input: { prompt: "hi" }, policy: { ttl } });
  const listener = e.queue().wait(runs, 60_000, "ticket", "status");
  await eventually(async () => expect(await e.get(`status/${runs}`)).toMatchObject({ status: "IN_PROGRESS" }));
  pass(10_050);
  await e.ring();
  expect(await listener).toMatchObject({ refused: "JOB_NOT_FOUND" });
  expect(await e.queue().status(waits, null)).toMatchObject({ refused: "JOB_NOT_FOUND" });
  const { kept, rows } = await counted(e);
  expect(kept).toEqual(rows);
  const next = await e.submit({ input: { prompt: "hi" } });
  await eventually(async () => expect(await e.get(`status/${next}`)).toMatchObject({ status: "COMPLETED" }));
});

it("applies all that is over of a job that is asked for", async () => {
  const e = endpoint();
  const id = await e.submit({ input: {}, policy: { ttl, executionTimeout: 9_000 } });
  await e.take();
  pass(20_000);
  await expectProblem(await e.send("POST", `retry/${id}`), "JOB_NOT_FOUND");
});

it("takes no job back of a lost worker whose time is over, however many there are", async () => {
  const e = endpoint();
  const count = 501;
  await runInDurableObject(e.queue(), async (queue) => {
    const body = new TextEncoder().encode('{"input":{}}');
    const range = { body, inputFrom: 9, inputTo: 11 };
    const times = { waitMs: 0, ttlMs: 600_000, executionTimeoutMs: 30_000 };
    const others = { sync: false, lowPriority: false, webhook: null, origin: "https://sluice.test" };
    for (let n = 0; n < count; n++) queue.submit({ id: `job-${n}`, ...range, ...times, ...others });
    for (let n = 0; n < count; n += 100) await queue.take("w1", "ticket", 100, 0);
  });
  pass(31_000);
  await e.ring();
  expect(await e.get("health")).toMatchObject({ jobs: { failed: count, retried: 0, inQueue: 0, inProgress: 0 } });
});

it("refuses to move a row that is not the job's any more, and counts nothing", async () => {
  const e = endpoint();
  const id = await e.submit();
  const other = await e.submit();
  await runInDurableObject(e.queue(), (_, { storage }) => {
    const store = new JobStore(storage, () => defaultEndpointSettings);
    const [gone, taken] = [store.find(id), store.find(other)];
    if (!gone || !taken) throw new Error("the job was not kept");
    store.transaction(() => store.move(gone, "expired", noon));
    store.transaction(() => store.move(taken, "taken", noon, { worker: "w1" }));
    for (const stale of [gone, taken]) {
      expect(() => store.transaction(() => store.move(stale, "expired", noon))).toThrow();
      expect(() => store.update(stale, { ttlMs: ttl })).toThrow();
    }
    expect(store.totals).toMatchObject({ jobs: 1, waiting: 0, running: 1 });
  });
  const { kept, rows } = await counted(e);
  expect(kept).toEqual(rows);
});

it("starts no job beyond its workers where an earlier release left a count below zero", async () => {
  const e = endpoint(model);
  const one = { workersMin: 0, workersMax: 1 };
  await e.queue().configure(endpointSettingsSchema.parse(one));
  await runInDurableObject(e.queue(), (_, { storage }) => {
    storage.sql.exec("UPDATE totals SET waiting = -2");
  });
  await evictDurableObject(e.queue());
  for (const _ of [1, 2, 3]) await e.submit({ input: { prompt: "[timeout]" } });
  await eventually(async () => expect(await e.get("health")).toMatchObject({ workers: { running: 1 } }));
});
