// One timer for a call's head and its body: when it is over, and when it is not yet.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Clock } from "../../../src/gateway/upstream/clock.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

type Step = number | ((clock: Clock) => void);
const extend = (clock: Clock) => clock.extend(15);
const restart = (clock: Clock) => clock.restart(10);
const stop = (clock: Clock) => clock.stop();

it.each<[what: string, steps: Step[], isOver: boolean]>([
  ["runs", [9], false],
  ["has run down", [10], true],
  ["got more time, and runs", [5, extend, 19], false],
  ["got more time, and has run down", [5, extend, 20], true],
  ["began anew, and runs", [9, restart, 9], false],
  ["began anew, and has run down", [9, restart, 10], true],
  ["got more time before it began anew, and runs", [extend, 9, restart, 24], false],
  ["got more time before it began anew, and has run down", [extend, 9, restart, 25], true],
  ["was stopped", [9, stop, 100], false],
  ["was stopped, and cannot begin anew", [stop, restart, 100], false],
])("one that %s", async (_what, steps, isOver) => {
  const clock = new Clock(10);
  const race = clock.race(new Promise(() => {}));
  const told = vi.fn();
  race.catch(told);
  for (const step of steps) typeof step === "number" ? await vi.advanceTimersByTimeAsync(step) : step(clock);
  expect([clock.isOver, clock.signal.aborted, told.mock.calls.length]).toEqual([isOver, isOver, isOver ? 1 : 0]);
});
