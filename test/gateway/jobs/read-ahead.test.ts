// How far a stream is read ahead of its client, by what the reads bring. No time passes: the clocks are the test's.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ReadAhead } from "../../../src/gateway/jobs/read-ahead.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] }));
afterEach(() => void vi.useRealTimers());

const never = new Promise<void>(() => {});

/** Reads so for a time; how much, and whether the client is let go. */
async function reading(ms: number, bytes: number, tookMs: number, served = never) {
  const ahead = new ReadAhead(served);
  const startedAt = Date.now();
  let read = 0;
  while (Date.now() < startedAt + ms) {
    const may = ahead.mayRead();
    await vi.advanceTimersToNextTimerAsync();
    if (!(await may)) return { read, letGo: true };
    await vi.advanceTimersByTimeAsync(tookMs);
    ahead.brought(bytes, tookMs);
    read += bytes;
    if (read > 100_000_000) break;
  }
  return { read, letGo: false };
}

it("a client that reads nothing is let go, about a megabyte later", async () => {
  const { read, letGo } = await reading(120_000, 24 * 1024, 0);
  expect(letGo).toBe(true);
  expect(read).toBeLessThan(1.25 * 1024 * 1024);
});

it.each([
  ["that fetched more than the copy's reads did", 25 * 1024, 0],
  ["that waits for the model service", 2 * 1024, 80],
])("a client %s is not", async (_name, bytes, tookMs) => {
  expect((await reading(120_000, bytes, tookMs)).letGo).toBe(false);
});

it("a client that has all of it is waited for no more", async () => {
  expect(await reading(1, 16 * 1024, 0, Promise.resolve())).toEqual({ read: expect.any(Number), letGo: false });
});
