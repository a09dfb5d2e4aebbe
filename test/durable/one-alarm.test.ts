// An object's one alarm, beside an object that only notes when it was told to ring.
import { afterEach, beforeEach, describe, expect, it, type MockInstance, vi } from "vitest";
import { OneAlarm } from "../../src/durable/one-alarm.ts";

const now = Date.UTC(2031, 5, 16, 12);
const rings: number[] = [];
let alarm: OneAlarm;
let act: () => Promise<void>;
let beside: Promise<unknown>[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now });
  rings.length = 0;
  beside = [];
  const storage = { setAlarm: async (at: number) => void rings.push(at), deleteAlarm: async () => void rings.push(0) };
  const ctx = {
    storage,
    waitUntil: (work: Promise<unknown>) => void beside.push(work),
  } as unknown as DurableObjectState;
  act = async () => {};
  alarm = new OneAlarm(ctx, "a test", () => act());
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
  act = async () => alarm.arm(now + 9);
  await alarm.ring();
  expect(rings).toEqual([now + 5, now + 9]);
});

it("comes back a second after it failed, says so in the log, and is put off by nobody", async () => {
  const log = vi.spyOn(console, "error").mockImplementation(() => {});
  act = async () => {
    throw new TypeError("what a message may name is nobody's business");
  };
  await alarm.ring();
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

describe("fault H4: the runtime has given the alarm up", () => {
  const minuteMs = 60_000;
  let acts: number;
  let log: MockInstance;
  const calls = async (due: number) => {
    alarm.arm(due);
    await Promise.all(beside.splice(0));
  };
  beforeEach(() => {
    acts = 0;
    act = async () => {
      acts += 1;
    };
    alarm.graceMs = 0;
    log = vi.spyOn(console, "error").mockReturnValue();
  });
  afterEach(() => void vi.restoreAllMocks());

  it("is done by the next call once it is a minute late, and not before", async () => {
    await calls(now - minuteMs);
    expect(acts).toBe(0);
    await calls(now - minuteMs - 1);
    expect(acts).toBe(1);
  });

  it("is done ever more seldom while what is due stays due, and told once", async () => {
    for (let seconds = 0; seconds < 3600; seconds++) {
      vi.setSystemTime(now + seconds * 1000);
      await calls(now - 2 * minuteMs);
    }
    expect(acts).toBe(5);
    expect(log).toHaveBeenCalledOnce();
  });

  it("is left to the runtime where that rings after all", async () => {
    alarm.graceMs = 5;
    alarm.arm(now - 2 * minuteMs);
    vi.setSystemTime(now + 1);
    await alarm.ring();
    await Promise.all(beside);
    expect(acts).toBe(1);
  });

  it("is not late while it rings again and again for more than it can do", async () => {
    act = async () => alarm.arm(now - 10 * minuteMs);
    await alarm.ring();
    await calls(now - 10 * minuteMs);
    expect(acts).toBe(0);
  });
});
