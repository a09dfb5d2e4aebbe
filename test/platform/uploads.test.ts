// Bodies that are stored as they flow: adopted by the job that comes for them, or removed when their time is over.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import * as callers from "../support/callers.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { type Endpoint, endpoint, eventually, key, noon, pass, setTime } from "./support/endpoint.ts";

const bytes = new TextEncoder().encode(`{"input":{"x":"${"y".repeat(2_000_000)}"}}`);
const lifetimeMs = 15 * 60_000;

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const flow = () => new Response(bytes).body as ReadableStream<Uint8Array>;
const stored = (e: Endpoint) =>
  runInDurableObject(
    e.queue(),
    (_, { storage }) => storage.sql.exec("SELECT key, part FROM payloads").toArray().length,
  );

async function uploaded(e: Endpoint): Promise<{ upload: number; size: number }> {
  const answer = await e.queue().upload("run", flow());
  if (!answer || "refused" in answer) throw new Error(answer?.refused ?? "broken off");
  return answer;
}

function submit(e: Endpoint, body: { upload: number; size: number }, id = "job-1") {
  const times = { waitMs: 0, ttlMs: 3_600_000, executionTimeoutMs: null };
  const range = { inputFrom: 9, inputTo: bytes.byteLength - 1 };
  const others = { sync: false, lowPriority: false, webhook: null, origin: "https://sluice.test" };
  return e.queue().submit({ id, body, ...times, ...range, ...others });
}

it("becomes the job's input, whole, and lives as long as the job", async () => {
  const e = endpoint();
  const upload = await uploaded(e);
  expect(upload.size).toBe(bytes.byteLength);
  expect(await submit(e, upload)).toEqual({ id: "job-1" });
  pass(lifetimeMs);
  await e.ring();
  expect(await e.get("job-take/w1")).toEqual({ ...JSON.parse(new TextDecoder().decode(bytes)), id: "job-1" });
});

it("attack: whose queue breaks at its last byte is a 503", async () => {
  vi.spyOn(console, "warn").mockReturnValue();
  const upload = async (_: string, body: ReadableStream) => {
    for await (const _ of body);
    throw new Error("the object was reset");
  };
  const settings = { ENDPOINTS: "bare", ENDPOINT_QUEUE: { getByName: () => ({ upload }) } };
  const body = new TextDecoder().decode(bytes);
  const response = await callers.send(callers.isolate(settings), "POST", "/platform/v2/bare/run", { key, body });
  expect(await callers.refusalOf(response)).toMatchObject({ status: 503, code: "UNAVAILABLE" });
});

it("sent twice under one id is one job", async () => {
  const e = endpoint();
  const upload = await uploaded(e);
  for (const _ of [1, 2]) expect(await submit(e, upload)).toEqual({ id: "job-1" });
  expect(await e.get("health")).toMatchObject({ jobs: { inQueue: 1 } });
});

it("whose job never came is removed after its time, whatever happens to the object", async () => {
  const e = endpoint();
  const upload = await uploaded(e);
  expect(await stored(e)).toBe(2);
  await evictDurableObject(e.queue());
  pass(lifetimeMs - 1);
  await e.ring();
  expect(await stored(e)).toBe(2);
  pass(1);
  await e.ring();
  expect(await stored(e)).toBe(0);
  expect(await submit(e, upload)).toMatchObject({ refused: "INVALID_REQUEST" });
});

it("that was begun before its endpoint was retired becomes no job", async () => {
  const e = endpoint();
  const upload = await uploaded(e);
  await e.queue().retire();
  expect(await submit(e, upload)).toMatchObject({ refused: "ENDPOINT_NOT_FOUND" });
});

it("that outlives its time while it flows leaves nothing behind", async () => {
  const e = endpoint();
  const { readable, writable } = new FixedLengthStream(bytes.byteLength);
  const writer = writable.getWriter();
  const answer = e.queue().upload("run", readable);
  const first = writer.write(bytes.slice(0, 1_500_000));
  await eventually(async () => expect(await stored(e)).toBe(1));
  pass(lifetimeMs);
  await e.ring();
  await first.catch(() => {});
  await writer.write(bytes.slice(1_500_000)).catch(() => {});
  await writer.close().catch(() => {});
  expect(await answer).toBeUndefined();
  expect(await stored(e)).toBe(0);
});
