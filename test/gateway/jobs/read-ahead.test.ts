// How a stream is read beside its client, by what the reads bring. No time passes: the clocks are the test's.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ReadAhead } from "../../../src/gateway/jobs/read-ahead.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] }));
afterEach(() => void vi.useRealTimers());

const never = new Promise<void>(() => {});
const minute = 60_000;
/** What the runtime fetches for one read, at most. */
const fetchedBytes = 16 * 1024;

/** What a read brings of at least so many bytes, into so much room, and how long it waited for them. */
type Read = (leastBytes: number, roomBytes: number) => { bytes: number; tookMs: number };

/** Reads until a time is over or the client is let go. */
async function reading(ms: number, read: Read, served = never) {
  const ahead = new ReadAhead(served);
  const until = Date.now() + ms;
  let reads = 0;
  let roomBytes = 0;
  let longestMs = 0;
  let heldMs = 0;
  while (Date.now() < until) {
    const askedAt = Date.now();
    if (!(await passed(ahead.mayRead()))) return { reads, roomBytes, longestMs, heldMs, letGo: true };
    longestMs = Math.max(longestMs, Date.now() - askedAt);
    const { bytes, tookMs } = read(ahead.leastBytes, ahead.roomBytes);
    if (ahead.leastBytes > 1) heldMs = Math.max(heldMs, tookMs);
    await vi.advanceTimersByTimeAsync(tookMs);
    reads += 1;
    roomBytes += Math.min(ahead.roomBytes, fetchedBytes);
    ahead.brought(bytes, tookMs);
  }
  return { reads, roomBytes, longestMs, heldMs, letGo: false };
}

async function passed<T>(promise: Promise<T>): Promise<T> {
  let isOver = false;
  promise.finally(() => {
    isOver = true;
  });
  await vi.advanceTimersByTimeAsync(0);
  while (!isOver) await vi.advanceTimersToNextTimerAsync();
  return promise;
}

/** A client that reads all at once: what came since the last read lies ready, else the next event is waited for. */
function followed(eventBytes: number, everyMs: number): Read {
  const startedAt = Date.now();
  let taken = 0;
  return (leastBytes, roomBytes) => {
    const nowMs = Date.now() - startedAt;
    const enoughAtMs = Math.ceil((taken + leastBytes) / eventBytes) * everyMs;
    const tookMs = Math.max(0, enoughAtMs - nowMs);
    const sent = Math.floor((nowMs + tookMs) / everyMs) * eventBytes;
    const bytes = Math.min(roomBytes, sent - taken);
    taken += bytes;
    return { bytes, tookMs };
  };
}

const alone =
  (pieceBytes: number): Read =>
  (leastBytes, roomBytes) => ({
    bytes: Math.min(roomBytes, Math.ceil(leastBytes / pieceBytes) * pieceBytes),
    tookMs: 0,
  });

describe("of a stream", () => {
  it.each([
    ["large", fetchedBytes],
    ["small", 100],
    ["tiny", 1],
  ])("a client that takes no %s piece is let go, with less than a megabyte of room made for it", async (_, bytes) => {
    const { roomBytes, letGo } = await reading(5 * minute, alone(bytes));
    expect(letGo).toBe(true);
    expect(roomBytes).toBeLessThan(1024 * 1024);
  });

  it.each([
    [20, 10],
    [35, 20],
    [60, 24],
    [100, 1],
    [110, 10],
    [110, 45],
    [110, 500],
    [1500, 100],
    [4096, 2],
  ])("a client that takes each event of %i bytes, every %d ms, is not", async (bytes, everyMs) => {
    const { longestMs, letGo } = await reading(3 * minute, followed(bytes, everyMs));
    expect(letGo).toBe(false);
    expect(longestMs).toBeLessThanOrEqual(12_000);
  });
});

it("nor is one that paused for twenty seconds", async () => {
  const until = Date.now() + 20_000;
  const behind = followed(100, 10);
  const read: Read = (...asked) => (Date.now() < until ? alone(100)(...asked) : behind(...asked));
  expect((await reading(5 * minute, read)).letGo).toBe(false);
});

describe("a live stream is held back nowhere", () => {
  it.each([
    [290, 10],
    [200, 12.5],
    [400, 2.5],
    [150, 20],
    [40, 10],
  ])("with events of %i bytes every %d ms", async (bytes, everyMs) => {
    const { heldMs, letGo } = await reading(3 * minute, followed(bytes, everyMs));
    expect([heldMs, letGo]).toEqual([0, false]);
  });

  it("with a large event now and then", async () => {
    const events = followed(150, 100);
    let nextAt = Date.now();
    let large = 0;
    const read: Read = (leastBytes, roomBytes) => {
      if (Date.now() >= nextAt) {
        nextAt += 5_000;
        large += 12_000;
      }
      if (large === 0) return events(leastBytes, roomBytes);
      const bytes = Math.min(large, roomBytes);
      large -= bytes;
      return { bytes, tookMs: 0 };
    };
    expect((await reading(3 * minute, read)).heldMs).toBe(0);
  });
});

it("a stream of a megabyte a second is read in large pieces", async () => {
  const { reads } = await reading(minute, followed(100, 0.1));
  expect((60 * 1_000_000) / reads).toBeGreaterThan(3 * 1024);
});

it("a stream that turns slow is held back no more than once", async () => {
  const ahead = new ReadAhead(never);
  ahead.brought(2048, 0);
  for (let reads = 0; reads < 10; reads++) ahead.brought(4096, 0);
  expect(ahead.leastBytes).toBeGreaterThan(1);
  expect(ahead.leastBytes).toBeLessThanOrEqual(4096);
  ahead.brought(4096, 12);
  for (let reads = 0; reads < 100; reads++) {
    expect(ahead.leastBytes).toBe(1);
    ahead.brought(100, reads % 30);
  }
});

it("a client that has all of it is waited for no more", async () => {
  const read: Read = (_, roomBytes) => ({ bytes: Math.min(roomBytes, fetchedBytes), tookMs: 1 });
  expect((await reading(minute, read, Promise.resolve())).letGo).toBe(false);
});

it("once nothing waits for the client any more, all is read, in large pieces", async () => {
  const served = Promise.withResolvers<void>();
  const ahead = new ReadAhead(served.promise);
  ahead.brought(26, 0);
  const may = ahead.mayRead();
  expect([vi.getTimerCount(), ahead.leastBytes]).toEqual([1, 1]);
  served.resolve();
  expect(await may).toBe(true);
  ahead.brought(26, 0);
  expect(await ahead.mayRead()).toBe(true);
  expect([vi.getTimerCount(), ahead.leastBytes]).toEqual([0, 8 * 1024]);
});
