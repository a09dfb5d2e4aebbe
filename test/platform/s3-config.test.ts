// A bucket's secret: it reaches the worker, and is erased once no worker can get the request again.
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { emptyStorage } from "../support/empty-storage.ts";
import { type Endpoint, endpoint, eventually, noon, pass, setTime, statementsOf } from "./support/endpoint.ts";

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const secret = "the-secret-of-a-bucket";
const s3Config = { accessId: "id", accessSecret: secret, bucketName: "b", endpointUrl: "https://s3.example.com" };
const policy = { ttl: 3_600_000 };
/** Small, and so large that it is stored as it came, the secret before or behind its input. */
const requests: [string, string][] = [
  ["small", JSON.stringify({ input: { a: 1 }, s3Config, policy })],
  ["large, the secret first", JSON.stringify({ s3Config, input: { a: "x".repeat(1_500_000) } })],
  ["large, the secret last", JSON.stringify({ input: { a: "x".repeat(1_500_000) }, s3Config })],
];

/** Whether the object's storage still has the secret. */
const holds = (e: Endpoint) =>
  runInDurableObject(e.queue(), (_, { storage: { sql } }) => {
    const tables = sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
    const rows = tables.flatMap(({ name }) =>
      name.startsWith("_") ? [] : sql.exec(`SELECT * FROM ${name}`).toArray(),
    );
    const texts = rows.flatMap((row) =>
      Object.values(row).map((value) =>
        value instanceof ArrayBuffer ? new TextDecoder().decode(value) : String(value),
      ),
    );
    return texts.some((text) => text.includes(secret));
  });

async function submitted(body: string): Promise<{ e: Endpoint; id: string; taken: string }> {
  const e = endpoint();
  const { id } = await e.read<{ id: string }>("POST", "run", { body });
  const taken = await (await e.send("GET", "job-take/w1")).text();
  expect(JSON.parse(taken)).toMatchObject({ id, s3Config, input: JSON.parse(body).input });
  expect(await holds(e)).toBe(true);
  return { e, id, taken };
}

it.each(requests)("is erased when the job is done or cancelled (%s), and no answer says it", async (_, body) => {
  const done = await submitted(body);
  await done.e.done(done.id);
  expect(await holds(done.e)).toBe(false);
  const status = await done.e.read("GET", `status/${done.id}`);
  expect(status).toMatchObject({ status: "COMPLETED", output: "made" });
  const cancelled = await submitted(body);
  await cancelled.e.post(`cancel/${cancelled.id}`);
  expect(await holds(cancelled.e)).toBe(false);
  for (const path of [`status/${done.id}`, "requests", `cancel/${done.id}`]) {
    expect(await (await done.e.send("GET", path)).text()).not.toContain(secret);
  }
});

it.each(requests)(
  "is kept for a retry of a job that failed or timed out (%s), until retention ends",
  async (_, body) => {
    const { e, id } = await submitted(body);
    await e.done(id, { error: "no" });
    expect(await holds(e)).toBe(true);
    expect(await e.post(`retry/${id}`)).toMatchObject({ status: "IN_QUEUE" });
    expect(await (await e.send("GET", "job-take/w1")).json()).toMatchObject({ id, s3Config });
    await e.done(id, { error: "no" });
    pass(31 * 60_000);
    await e.ring();
    expect(await holds(e)).toBe(false);
    expect((await e.send("GET", `status/${id}`)).status).toBe(404);
  },
);

it.each(requests)(
  "is erased by a purge while a notice of the job's end before is still owed, which carries the input (%s)",
  async (_, body) => {
    const received: unknown[] = [];
    vi.spyOn(globalThis, "fetch").mockImplementation(async (request) => {
      received.push(await (request as Request).json());
      return new Response();
    });
    const webhook = "https://app.example.com/hook";
    const { e, id } = await submitted(JSON.stringify({ ...JSON.parse(body), webhook }));
    await e.done(id, { error: "no" });
    await e.post(`retry/${id}`);
    expect(await e.post("purge-queue")).toMatchObject({ removed: 1 });
    expect(await holds(e)).toBe(false);
    await e.ring();
    await eventually(async () => expect(received).toMatchObject([{ id, input: JSON.parse(body).input }]));
  },
);

it("is not erased row by row of what is removed as a whole", async () => {
  const { e } = await submitted(JSON.stringify({ input: { a: "x".repeat(1_500_000) }, s3Config, policy }));
  const asked = await statementsOf(e, async () => {
    pass(3_600_001);
    await e.ring();
  });
  expect(await holds(e)).toBe(false);
  expect(asked.filter((statement) => /payloads/.test(statement) && !/^SELECT/.test(statement))).toEqual([
    "DELETE FROM payloads WHERE key = ?",
  ]);
});

it("is erased when the ttl ends", async () => {
  const { e } = await submitted(requests[0]?.[1] ?? "");
  pass(3_600_001);
  await e.ring();
  expect(await holds(e)).toBe(false);
});
