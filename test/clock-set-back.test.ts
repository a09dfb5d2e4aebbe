// fault L2: the clock is set back by an hour. Nothing that an isolate remembers lasts until the clock has caught up.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { KeySet } from "../src/gateway/identity/jwks.ts";
import { HandedOut } from "../src/gateway/jobs/handed-out.ts";
import { PendingBinds } from "../src/gateway/jobs/pending-binds.ts";
import { ReadAhead } from "../src/gateway/jobs/read-ahead.ts";
import { isJoinable } from "../src/gateway/media/flight.ts";
import { ControlReader } from "../src/gateway/operator-settings/control-reader.ts";
import { Breaker } from "../src/gateway/upstream/breaker.ts";
import { callUpstream } from "../src/gateway/upstream/upstream.ts";
import { WatchedWriter } from "../src/http/watched-writer.ts";
import { BoundedMemory } from "../src/isolate/bounded-memory.ts";
import { isRecent } from "../src/isolate/recent.ts";
import { Reminder } from "../src/isolate/reminder.ts";
import { SecretSearch } from "../src/json/secret-search.ts";
import { AttachedWorkers } from "../src/platform/queue/attached-workers.ts";
import { RateLimits } from "../src/platform/queue/rate-limits.ts";
import { makeProviderKey } from "./support/provider.ts";

const noon = Date.UTC(2031, 5, 16, 12);
const hourMs = 60 * 60_000;
const eleven = noon - hourMs;

beforeEach(() => void vi.spyOn(console, "error").mockReturnValue());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it.each([
  ["now", 0, true],
  ["a moment ago", 9, true],
  ["too long ago", 10, false],
  ["ahead of the clock", -1, false],
])("fault L2: what was %s", (_when, agoMs, recent) => {
  expect(isRecent(noon - agoMs, 10, noon)).toBe(recent);
  expect(isRecent(Number.NEGATIVE_INFINITY, 10, noon)).toBe(false);
});

describe("fault L2: CONTROL", () => {
  const defer = () => {};

  it("is read again, and then as seldom as ever", async () => {
    const read = vi.fn(async () => undefined);
    const reader = new ControlReader(read);
    await reader.current(noon, defer);
    await reader.current(eleven, defer);
    expect(read).toHaveBeenCalledTimes(2);
    await reader.current(eleven + 9_999, defer);
    expect(read).toHaveBeenCalledTimes(2);
    await reader.current(eleven + 20_000, defer);
    expect(read).toHaveBeenCalledTimes(3);
  });

  it("is asked again after it failed, and what was known before counts no more", async () => {
    const answers = [() => Promise.resolve(undefined), () => Promise.reject(new Error("overloaded"))];
    const read = vi.fn(() => (answers.length > 1 ? answers.shift() : answers[0])?.() ?? Promise.resolve(undefined));
    const reader = new ControlReader(read);
    await reader.current(noon, defer);
    await reader.current(noon + 20_000, defer);
    await expect(reader.current(eleven, defer)).rejects.toMatchObject({ code: "CONTROL_UNAVAILABLE" });
    expect(read).toHaveBeenCalledTimes(3);
  });
});

describe("fault L2: a circuit", () => {
  const payers = ["ada", "bob", "eve", "mallory", "trent"];

  it("that is open lets a call through, and opens again by new failures alone", () => {
    const breaker = new Breaker();
    for (const payer of payers) breaker.failed("m", payer, noon);
    expect([breaker.isOpen("m", noon), breaker.isOpen("m", eleven)]).toEqual([true, false]);
    breaker.failed("m", "ada", eleven);
    expect(breaker.isOpen("m", eleven)).toBe(false);
    for (const payer of payers) breaker.failed("m", payer, eleven);
    expect([breaker.isOpen("m", eleven + 4_999), breaker.isOpen("m", eleven + 5_000)]).toEqual([true, false]);
  });
});

describe("fault L2: the provider's keys", () => {
  it("are fetched again, after they failed too", async () => {
    const { publicJwk } = await makeProviderKey("first");
    const header = { alg: "RS256", kid: "first" };
    const fetch = vi.fn(async () => Response.json({ keys: [publicJwk] }));
    const keys = new KeySet("https://provider.example.com/jwks", fetch);
    await keys.find(header, noon);
    await keys.find(header, eleven);
    expect(fetch).toHaveBeenCalledTimes(2);
    fetch.mockRejectedValueOnce(new Error("connection refused"));
    const others = new KeySet("https://provider.example.com/jwks", fetch);
    await expect(others.find(header, noon)).rejects.toMatchObject({ code: "IDENTITY_UNAVAILABLE" });
    expect(await others.find(header, eleven)).toBeDefined();
  });
});

describe("fault L2: a bounded memory", () => {
  it("forgets what would last for an hour longer", () => {
    const memory = new BoundedMemory<string>(10_000);
    memory.set("a", "A", noon + 1_000);
    expect(memory.get("a", noon)).toBe("A");
    expect(memory.get("a", eleven)).toBeUndefined();
    memory.set("a", "B", eleven + 1_000);
    expect([memory.get("a", eleven + 999), memory.get("a", eleven + 1_000)]).toEqual(["B", undefined]);
  });

  it("forgets nothing where a request's moment is older than the newest one's", () => {
    const memory = new BoundedMemory<string>(10_000);
    memory.set("a", "A", noon + 1_000);
    expect([memory.get("a", noon), memory.get("a", noon - 10_000)]).toEqual(["A", "A"]);
  });
});

it("fault L2: a reminder is due", () => {
  const reminder = new Reminder(60_000);
  expect([reminder.isDue(noon), reminder.isDue(noon), reminder.isDue(eleven)]).toEqual([true, false, true]);
});

it("fault L2: ids that nobody flushed find somebody else after two seconds, and are not forgotten", () => {
  const pending = new PendingBinds();
  const bind = (name: string) => ({ admission: `admission-${name}`, upstreamId: name });
  pending.add("ada", [bind("a")], noon);
  expect(pending.add("ada", [bind("b")], eleven)).toBe(false);
  expect(pending.add("ada", [bind("c")], eleven + 2_001)).toBe(true);
  expect(pending.take("ada")).toHaveLength(3);
  pending.add("bob", [bind("d")], eleven + 20 * 60_000);
  expect(pending.size).toBe(1);
});

it("fault L2: what was handed out is told within a second", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: noon });
  const handedOut = new HandedOut();
  handedOut.everyMs = 50;
  const handOut = vi.fn(async () => {});
  const deferred: Promise<unknown>[] = [];
  const call = { meter: { handOut }, waitUntil: (work: Promise<unknown>) => void deferred.push(work) };
  const job = { admission: "a", upstreamId: "r" };
  const give = () => handedOut.pieces(call as unknown as Parameters<HandedOut["pieces"]>[0], job, 1, 10);
  await give();
  // By less than what makes the memory forget.
  vi.setSystemTime(noon - 30_000);
  await give();
  await Promise.all(deferred);
  expect(handOut).toHaveBeenCalledTimes(2);
}, 5_000);

it("fault L2: a flight whose leader is lost is boarded by nobody", () => {
  const flight = { leader: "a", ref: null, since: noon, isShared: false, request: null };
  expect([isJoinable(flight, noon), isJoinable(flight, eleven)]).toEqual([true, false]);
});

describe("fault L2: within one request", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"], now: noon }));

  it("a refused call is not tried for an hour", async () => {
    const send = vi.fn(async () => {
      vi.setSystemTime(eleven);
      return Response.json({}, { status: 429 });
    });
    const times = { headMs: 1_000, bodyMs: 1_000, streamMs: 1_000, retryMs: 2_000 };
    const keySearch = new SecretSearch(["a-key-of-the-upstream-0123456789"]);
    const upstream = { base: "https://up.example.com/v2", keys: ["k"], keySearch, breaker: new Breaker(), times };
    const call = { method: "GET" as const, segments: ["m", "status", "a"], repeatable: true };
    const { response } = await callUpstream({ ...upstream, payer: "ada", send }, call);
    expect([response.status, send.mock.calls.length]).toEqual([429, 1]);
  });

  it("a client that does not read is let go", async () => {
    const { writable } = new IdentityTransformStream();
    const writer = new WatchedWriter(writable);
    const written = writer.write(new Uint8Array(1_000_000)).catch(() => "let go");
    await vi.advanceTimersByTimeAsync(1_000);
    vi.setSystemTime(eleven);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await written).toBe("let go");
  });

  it("a client in doubt is let go", async () => {
    const ahead = new ReadAhead(new Promise(() => {}));
    for (let reads = 0; reads < 100; reads++) ahead.brought(4 * 1024, 0);
    vi.setSystemTime(eleven);
    const may = ahead.mayRead();
    await vi.advanceTimersToNextTimerAsync();
    expect(await may).toBe(false);
  });
});

describe("fault L2: the embedded platform", () => {
  it("counts the requests of ten seconds, not of an hour", () => {
    const limits = new RateLimits();
    const purge = (now: number) => limits.admit("purge-queue", 0, 10, now).allowed;
    expect([purge(noon), purge(noon), purge(noon)]).toEqual([true, true, false]);
    expect([purge(eleven), purge(eleven), purge(eleven)]).toEqual([true, true, false]);
    expect(purge(eleven + 10_000)).toBe(true);
  });

  it("misses a worker after half a minute", () => {
    const workers = new AttachedWorkers(0);
    workers.holds("w", "job", noon);
    expect(workers.lost(eleven)).toEqual([]);
    expect(workers.presentUntil(eleven)).toBe(eleven + 30_000);
    expect(workers.lost(eleven + 30_000)).toEqual([{ worker: "w", jobs: ["job"] }]);
  });

  it("waits for no worker that somebody else had heard of for longer than it may hold a call", () => {
    const until = new AttachedWorkers(noon).presentUntil(eleven);
    expect(until).toBe(eleven + 120_000);
  });
});
