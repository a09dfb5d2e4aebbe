// What a meter costs to be born and to wake: few tables, few reads, no alarm set anew, and one row an admission.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import type { UserMeter } from "../../../src/gateway/quota/user-meter.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ending, noon, request, stubOf } from "./admissions.ts";
import { newWorld, wake } from "./planted-meter.ts";

const world = newWorld(noon);
const claims = { plan: "free", planFrom: "token" as const, plans: "{}", token: undefined };

interface Watched {
  readonly state: DurableObjectState;
  /** The statements since the last time, in a few words each. */
  statements(): string[];
  readonly setAlarm: ReturnType<typeof vi.spyOn>;
}

function watched(act: (watch: Watched) => Promise<void>): Promise<void> {
  return runInDurableObject(stubOf("user:ada"), async (_object, state) => {
    const { sql } = state.storage;
    const exec = vi.spyOn(Object.getPrototypeOf(sql), "exec");
    const setAlarm = vi.spyOn(Object.getPrototypeOf(state.storage), "setAlarm");
    const statements = () => {
      const queries = exec.mock.calls.map(([query]) => String(query).trim().split(/\s+/).slice(0, 4).join(" "));
      exec.mockClear();
      return queries;
    };
    await act({ state, statements, setAlarm });
    await state.storage.deleteAlarm();
  });
}

const tables = ({ storage: { sql } }: DurableObjectState) =>
  sql
    .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type IN ('table', 'index') ORDER BY name")
    .toArray()
    .map(({ name }) => name)
    .filter((name) => !name.startsWith("_cf_") && !name.startsWith("sqlite_"));

beforeEach(() => {
  vi.spyOn(console, "warn").mockReturnValue();
  world.now = noon;
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

let count = 0;
const admitted = async (meter: UserMeter, change = {}) => {
  count += 1;
  const job = request({ ...claims, admission: newAdmission(noon + count), ...change });
  expect(await meter.admit(job)).toMatchObject({ admitted: true });
  return job;
};

describe("a meter", () => {
  it("is born with two tables and no index, and makes the others when they are needed", () =>
    watched(async ({ state }) => {
      const meter = wake(state, world);
      expect(tables(state)).toEqual([]);
      const job = await admitted(meter, { operation: "lb" });
      expect(tables(state)).toEqual(["jobs", "state"]);
      meter.settle(ending(job.admission));
      expect(tables(state)).toEqual(["jobs", "state"]);
      expect(meter.spent(job.owner, ["day"])).toMatchObject([{ jobs: 1 }]);
      expect(tables(state)).toEqual(["ended", "jobs", "spend", "state"]);
    }));

  it("writes one row in one statement an admission", () =>
    watched(async ({ state, statements }) => {
      const meter = wake(state, world);
      await admitted(meter);
      statements();
      await admitted(meter);
      expect(statements()).toEqual(["INSERT INTO jobs VALUES"]);
    }));

  it("writes a balanced call's end in one statement, and with the 17th moves all of them", () =>
    watched(async ({ state, statements }) => {
      const meter = wake(state, world);
      const ended = 18;
      const written: string[][] = [];
      for (let time = 0; time < ended; time++) {
        const { admission } = await admitted(meter, { plan: "unlimited", operation: "lb" });
        statements();
        meter.settle(ending(admission));
        written.push(statements());
      }
      const [moved] = written.splice(16, 1);
      expect(moved?.filter((statement) => statement === "DELETE FROM jobs WHERE")).toHaveLength(17);
      expect(written).toEqual(Array(ended - 1).fill(["UPDATE jobs SET reserved"]));
    }));

  it("reads twice on waking, and sets no alarm, whatever it holds", () =>
    watched(async ({ state, statements, setAlarm }) => {
      const meter = wake(state, world);
      const [job] = [await admitted(meter, { plan: "unlimited" }), await admitted(meter, { plan: "unlimited" })];
      meter.settle(ending(job.admission));
      await admitted(meter, { plan: "unlimited" });
      for (const leave of [() => undefined, () => meter.settle(ending(job.admission))]) {
        leave();
        statements();
        setAlarm.mockClear();
        const woken = wake(state, world);
        expect(statements()).toEqual(["SELECT json FROM state", "SELECT * FROM jobs"]);
        await admitted(woken, { plan: "unlimited" });
        expect(statements()).toEqual(["INSERT INTO jobs VALUES"]);
        expect(setAlarm).not.toHaveBeenCalled();
      }
    }));

  it("sets its alarm anew where the one that it noted is over", () =>
    watched(async ({ state, setAlarm }) => {
      vi.useFakeTimers({ toFake: ["Date"], now: noon });
      await admitted(wake(state, world));
      vi.setSystemTime(noon + 3_600_000);
      world.now = noon + 3_600_000;
      setAlarm.mockClear();
      wake(state, world).usage(claims);
      expect(setAlarm).toHaveBeenCalled();
      vi.useRealTimers();
    }));

  it("rings for what is owed after a death in between", () =>
    watched(async ({ state }) => {
      const job = await admitted(wake(state, world));
      const due = await state.storage.getAlarm();
      expect(due).toBe(noon + 60_000);
      const woken = wake(state, world);
      woken.bind([{ admission: job.admission, upstreamId: "job-1" }]);
      expect(await state.storage.getAlarm()).toBe(due);
    }));
});

it("a meter's alarm that rings early finds nothing to do, and rings again", async () => {
  await runInDurableObject(stubOf("user:ada"), async (object) => {
    object.clock = () => noon;
    await object.admit(request(claims));
  });
  await runDurableObjectAlarm(stubOf("user:ada"));
  const next = await runInDurableObject(stubOf("user:ada"), (_object, { storage }) => storage.getAlarm());
  expect(next).toBe(noon + 60_000);
});
