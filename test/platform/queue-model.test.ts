// Random operations, time steps and evictions, with a model beside the object: nothing is lost, nothing runs twice uncounted.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { amount } from "../support/amount.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { type Endpoint, endpoint, noon, pass, setTime } from "./support/endpoint.ts";

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

/** What the model knows of a job: enough to say what it may be and what it must not. */
interface Known {
  readonly id: string;
  /** From submission, as it was set last. */
  ttlMs: number;
  readonly submittedAt: number;
  takes: number;
  givenBack: number;
  /** Runs of its lives before the last retry. */
  runsBefore: number;
  purged: boolean;
  worker: string | undefined;
  /** Finished or cancelled, and not retried since. */
  over: boolean;
}

interface World {
  readonly e: Endpoint;
  readonly jobs: Known[];
}

type Step = (world: World) => Promise<unknown>;

/** An operation with what it is called in a counterexample. */
function operation<T>(name: string, values: fc.Arbitrary<T>, act: (value: T, world: World) => Promise<unknown>) {
  return values.map((value): Step => {
    const label = `${name} ${JSON.stringify(value)}`;
    return Object.assign((world: World) => act(value, world), { [fc.toStringMethod]: () => label });
  });
}

const pick = <T>(list: readonly T[], at: number): T | undefined => list[at % Math.max(1, list.length)];
const nth = fc.nat({ max: 9 });
const worker = fc.constantFrom("w1", "w2");
const retentionMs = 30 * 60_000;

const submit = operation(
  "submit",
  fc.record({
    ttl: fc.constantFrom(15_000, 600_000, 3_600_000),
    executionTimeout: fc.constantFrom(40_000, 600_000),
    webhook: fc.boolean(),
    lowPriority: fc.boolean(),
  }),
  async ({ ttl, executionTimeout, webhook, lowPriority }, { e, jobs }) => {
    const id = await e.submit({
      input: { n: jobs.length },
      policy: { ttl, executionTimeout, lowPriority },
      ...(webhook && { webhook: "https://sluice.test/healthz" }),
    });
    jobs.push({
      id,
      ttlMs: ttl,
      submittedAt: Date.now(),
      takes: 0,
      givenBack: 0,
      runsBefore: 0,
      purged: false,
      worker: undefined,
      over: false,
    });
  },
);
/** Each run beside the first was counted, given back unseen, or asked for by the client. */
async function expectRunsCounted(e: Endpoint, job: Known): Promise<void> {
  const { retries = 0 } = await e.get(`status/${job.id}`);
  expect(job.takes).toBeLessThanOrEqual(1 + Number(retries) + job.givenBack + job.runsBefore);
}

const take = operation("take", fc.tuple(worker, fc.integer({ min: 1, max: 3 })), async ([name, count], { e, jobs }) => {
  for (const id of await e.take(name, count)) {
    const job = jobs.find((known) => known.id === id);
    if (!job) throw new Error("a job that nobody submitted was taken");
    expect(job.purged || job.over).toBe(false);
    job.takes += 1;
    job.worker = name;
    await expectRunsCounted(e, job);
  }
});
const finish = operation("finish", fc.tuple(nth, worker, fc.boolean()), async ([at, name, well], { e, jobs }) => {
  const job = pick(jobs, at);
  if (!job) return;
  const response = await e.done(job.id, well ? { output: at } : { error: "broke" }, name);
  if (!response.ok) return;
  expect(job.worker).toBe(name);
  expect(job.over).toBe(false);
  job.over = true;
});
const chunk = operation("chunk", fc.tuple(nth, worker), async ([at, name], { e, jobs }) => {
  const job = pick(jobs, at);
  if (job) await e.chunk(job.id, "piece", name);
});
const drain = operation("drain", nth, async (at, { e, jobs }) => {
  const job = pick(jobs, at);
  if (job) await e.queue().stream(job.id, 0, "drain");
});
const giveBack = operation("give back", fc.tuple(nth, worker), async ([at, name], { e, jobs }) => {
  const job = pick(jobs, at);
  if (!job) return;
  const { status, workerId } = await e.get(`status/${job.id}`);
  await e.queue().giveBack(name, [job.id]);
  if (status === "IN_PROGRESS" && workerId === name) job.givenBack += 1;
});
const ping = operation("ping", fc.tuple(worker, fc.boolean()), async ([name, busy], { e, jobs }) => {
  const held = jobs.filter((job) => job.worker === name && !job.over).map(({ id }) => id);
  await e.ping(name, ...(busy ? held : []));
});
const cancel = operation("cancel", nth, async (at, { e, jobs }) => {
  const job = pick(jobs, at);
  const { status } = job ? await e.post(`cancel/${job.id}`) : {};
  if (job && status === "CANCELLED") job.over = true;
});
const retry = operation("retry", nth, async (at, { e, jobs }) => {
  const job = pick(jobs, at);
  if (!job) return;
  const { retries = 0 } = await e.get(`status/${job.id}`);
  const response = await e.send("POST", `retry/${job.id}`);
  if (!response.ok) return;
  // A new life: its first run, and another one each time that a worker is lost in it.
  job.runsBefore += 1 + Number(retries);
  job.over = false;
});
const setTtl = operation("ttl", nth, async (at, { e, jobs }) => {
  const job = pick(jobs, at);
  if (!job) return;
  const { ok } = await e.send("GET", `status/${job.id}?ttl=120000`);
  job.ttlMs = ok ? 120_000 : Math.min(job.ttlMs, 120_000);
});
const purge = operation("purge", fc.constant(null), async (_, { e, jobs }) => {
  // A purge takes a lost worker's job too, whose status waits for the alarm: a worker that reports late is believed.
  await e.ring();
  const before = await Promise.all(jobs.map(({ id }) => e.get(`status/${id}`)));
  const answer = await e.queue().purge();
  if ("refused" in answer) return;
  expect(answer.removed).toBe(before.filter(({ status }) => status === "IN_QUEUE").length);
  for (const [at, job] of jobs.entries()) if (before[at]?.["status"] === "IN_QUEUE") job.purged = true;
});
const wait = operation("wait", fc.constantFrom(1000, 11_000, 31_000, 31_000, 400_000), async (ms, { e }) => {
  pass(ms);
  await e.ring();
});
/** The alarm is late: whoever asks first must see what time did. */
const waitUnheard = operation("wait unheard", fc.constantFrom(5000, 45_000), async (ms) => pass(ms));
const evict = operation("evict", fc.constant(null), async (_, { e }) => {
  await e.queue().health();
  await evictDurableObject(e.queue());
});

const steps = fc.array(
  fc.oneof(
    ...[submit, submit, submit, take, take, finish, finish, chunk, drain, giveBack, ping, cancel, retry],
    ...[setTtl, purge, wait, wait, waitUnheard, evict],
  ),
  { minLength: 5, maxLength: 40 },
);

interface Stored {
  readonly totals: Record<string, number>;
  readonly rows: Record<string, number>;
  readonly unreferenced: number;
  readonly missing: number;
  readonly nextDue: number | null;
  readonly alarm: number | null;
}

function readStored(e: Endpoint): Promise<Stored> {
  return runInDurableObject(e.queue(), async (_, { storage }) => {
    const one = (query: string) => storage.sql.exec<Record<string, number>>(query).one();
    const used = "SELECT input FROM jobs UNION SELECT output FROM jobs UNION SELECT input FROM outbox";
    const referenced = `${used} UNION SELECT output FROM outbox UNION SELECT key FROM uploads`;
    return {
      totals: one("SELECT jobs, bytes, waiting, waitingLow, running FROM totals"),
      rows: one(`SELECT (SELECT COUNT(*) FROM jobs) AS jobs,
        (SELECT COALESCE(SUM(LENGTH(bytes)), 0) FROM payloads) + (SELECT COALESCE(SUM(LENGTH(bytes)), 0) FROM chunks) AS bytes,
        (SELECT COUNT(*) FROM jobs WHERE status = 'IN_QUEUE') AS waiting,
        (SELECT COUNT(*) FROM jobs WHERE status = 'IN_QUEUE' AND lowPriority) AS waitingLow,
        (SELECT COUNT(*) FROM jobs WHERE status = 'IN_PROGRESS') AS running`),
      unreferenced: one(
        `SELECT COUNT(*) AS n FROM payloads WHERE key NOT IN (SELECT input FROM (${referenced}) WHERE input IS NOT NULL)`,
      )["n"] as number,
      missing: one(
        `SELECT COUNT(*) AS n FROM (${used}) WHERE input IS NOT NULL AND input NOT IN (SELECT key FROM payloads)`,
      )["n"] as number,
      nextDue: one("SELECT MIN(at) AS at FROM (SELECT MIN(dueAt) AS at FROM jobs UNION SELECT MIN(dueAt) FROM outbox)")[
        "at"
      ] as number | null,
      alarm: await storage.getAlarm(),
    };
  });
}

async function check({ e, jobs }: World): Promise<void> {
  const stored = await readStored(e);
  expect(stored.totals).toEqual(stored.rows);
  expect(stored.unreferenced).toBe(0);
  expect(stored.missing).toBe(0);
  if (stored.nextDue !== null) expect(stored.alarm ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(stored.nextDue);
  for (const job of jobs) {
    const { status } = await e.get(`status/${job.id}`);
    if (status === 404) {
      const expired = Date.now() - job.submittedAt >= job.ttlMs;
      const forgotten = Date.now() - job.submittedAt >= retentionMs;
      expect(job.purged || expired || forgotten, `${job.id} is gone, and nothing took it away`).toBe(true);
      continue;
    }
    expect(job.purged).toBe(false);
  }
}

/** In the end time takes everything away, notices that nobody received too. */
async function expectNothingAfterAll(e: Endpoint): Promise<void> {
  pass(8 * 24 * 3_600_000);
  for (let ring = 0; ring < 6; ring++) {
    await e.ring();
    pass(30_000);
  }
  const { rows, alarm } = await readStored(e);
  expect(rows).toEqual({ jobs: 0, bytes: 0, waiting: 0, waitingLow: 0, running: 0 });
  expect(alarm).toBeNull();
}

it("keeps its promises whatever happens in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      setTime(noon);
      const world: World = { e: endpoint(), jobs: [] };
      for (const step of sequence) await step(world);
      await check(world);
      await expectNothingAfterAll(world.e);
      await emptyStorage();
    }),
    { numRuns: amount(150) },
  );
});
