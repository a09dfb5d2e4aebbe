// An object's one alarm, beside an object that only notes when it was told to ring.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { OneAlarm } from "../../src/wire/one-alarm.ts";

const now = Date.UTC(2031, 5, 16, 12);
const rings: number[] = [];
let alarm: OneAlarm;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now });
  rings.length = 0;
  const storage = { setAlarm: async (at: number) => void rings.push(at), deleteAlarm: async () => void rings.push(0) };
  const ctx = { storage, waitUntil: () => {} } as unknown as DurableObjectState;
  alarm = new OneAlarm(ctx, "a test");
});
afterEach(() => void vi.useRealTimers());

it("rings for what is due first, and is not set where nothing is", () => {
  alarm.arm(undefined, undefined);
  alarm.arm(now + 5, undefined, now + 3);
  expect(rings).toEqual([now + 3]);
});

it("is set anew for what is due earlier, never for what is due later", () => {
  for (const due of [now + 5, now + 7, now + 5, now + 4]) alarm.arm(due);
  expect(rings).toEqual([now + 5, now + 4]);
});

it("is set anew by what it did, however late that is due", async () => {
  alarm.arm(now + 5);
  await alarm.ring(async () => alarm.arm(now + 9));
  expect(rings).toEqual([now + 5, now + 9]);
});

it("comes back a second after it failed, says so in the log, and is put off by nobody", async () => {
  const log = vi.spyOn(console, "error").mockImplementation(() => {});
  await alarm.ring(async () => {
    throw new TypeError("what a message may name is nobody's business");
  });
  alarm.arm(now + 60_000);
  expect(rings).toEqual([now + 1000]);
  const [[line]] = log.mock.calls as [[string]];
  expect(JSON.parse(line)).toMatchObject({ alarm: "a test", error: "TypeError" });
  expect(JSON.parse(line).stack[0]).toMatch(/^ +at .*one-alarm/);
  expect(line).not.toContain("nobody's business");
});

it("can be set for any time once it was stopped", async () => {
  alarm.arm(now + 5);
  await alarm.stop();
  alarm.arm(now + 9);
  expect(rings).toEqual([now + 5, 0, now + 9]);
});
