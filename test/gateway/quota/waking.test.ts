// An admission is one row: whatever dies or fails around it, memory and SQL count the same.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { plansText } from "../../../src/gateway/operator-settings/plans.ts";
import type { Rule } from "../../../src/gateway/operator-settings/rules.ts";
import type { UserMeter } from "../../../src/gateway/quota/user-meter.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ending, noon, request } from "./admissions.ts";
import { newWorld, refuseWrites, wake, withMeter } from "./planted-meter.ts";

const rules: Rule[] = [
  { unit: "requests", limit: 10_000, per: "minute" },
  { unit: "requests", limit: 10_000, per: "day", models: ["flux"] },
  { unit: "jobs", limit: 10_000 },
  { unit: "usd", limit: 10_000, per: "day" },
];
const claims = { plan: "tested", planFrom: "token", plans: plansText({ tested: rules }), token: undefined } as const;
const token = { id: "narrow", rules: rules.slice(0, 1), maxCostMicroUsd: 5_000_000 };
const world = newWorld(noon);

const used = (meter: UserMeter) => {
  const { limits, totals } = meter.usage({ ...claims, token });
  return { ...Object.fromEntries(limits.map(({ name, used }) => [name, used])), ...totals };
};
/** How many admissions the state counts; those after them are counted from their rows. */
const counted = (sql: SqlStorage) =>
  sql
    .exec<{ json: string }>("SELECT json FROM state")
    .toArray()
    .map(({ json }) => JSON.parse(json).turn)[0] ?? 0;

beforeEach(() => {
  vi.spyOn(console, "warn").mockReturnValue();
  world.now = noon;
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("an object that dies after it admitted", () => {
  it("counts as before when it wakes: requests, jobs, money, those of a token too", () =>
    withMeter(world, async (meter, state) => {
      const jobs = [
        request(claims),
        request({ ...claims, token }),
        request({ ...claims, model: "sora", kind: "video" }),
      ];
      for (const job of jobs) await meter.admit(job);
      await meter.admit(request({ ...claims, token, idempotency: { key: "k", fingerprint: "f" } }));
      meter.settle(ending(jobs[0]?.admission ?? ""));
      for (let time = 0; time < 3; time++) await meter.admit(request({ ...claims, token }));
      meter.bind([{ admission: jobs[2]?.admission ?? "", upstreamId: "job-1" }]);
      expect(counted(state.storage.sql)).toBe(4);

      const expected = {
        "requests-minute": 7,
        "requests-day-flux": 6,
        jobs: 6,
        "usd-day": 135_000,
        "token-requests-minute": 5,
        "token-cost": 100_000,
        known: 15_000,
        assumed: 0,
        reserved: 120_000,
      };
      expect(used(meter)).toEqual(expected);
      const woken = wake(state, world);
      expect(used(woken)).toEqual(expected);
      woken.release(jobs[1]?.admission ?? "");
      const after = { ...expected, jobs: 5, "usd-day": 115_000, "token-cost": 80_000, reserved: 100_000 };
      expect(used(woken)).toEqual(after);
      expect(used(wake(state, world))).toEqual(after);
    }));

  it("counts its windows from the moments of the admissions", () =>
    withMeter(world, async (meter, state) => {
      for (let time = 0; time < 4; time++) {
        world.now = noon + time * 20_000;
        await meter.admit(request(claims));
      }
      expect(counted(state.storage.sql)).toBeLessThan(4);
      const woken = wake(state, world);
      expect(used(woken)).toMatchObject({ "requests-minute": 4 });
      world.now = noon + 62_000;
      expect(used(woken)).toMatchObject({ "requests-minute": 3, "requests-day-flux": 4 });
    }));

  it("has few rows to count, however many it admitted", () =>
    withMeter(world, async (meter, state) => {
      const admitted = 1300;
      for (let time = 0; time < admitted; time++) await meter.admit(request(claims));
      expect(counted(state.storage.sql)).toBeGreaterThanOrEqual(admitted - 500);
      expect(used(wake(state, world))).toMatchObject({ "requests-minute": admitted, reserved: admitted * 20_000 });
    }));

  it("forgets what was reset, and nothing that came later", () =>
    withMeter(world, async (meter, state) => {
      for (let time = 0; time < 3; time++) await meter.admit(request(claims));
      meter.reset();
      await meter.admit(request(claims));
      await meter.admit(request(claims));
      expect(used(meter)).toMatchObject({ "requests-minute": 2, reserved: 100_000 });
      expect(used(wake(state, world))).toEqual(used(meter));
    }));
});

describe("an end that cannot be written", () => {
  it.each([
    ["its row", "UPDATE ON jobs", 0],
    ["the rows that are moved with it", "INSERT ON ended", 16],
  ])("changes nothing: %s", (_what, write, ended) =>
    withMeter(world, async (meter, state) => {
      const first = request(claims);
      await meter.admit(first);
      meter.settle(ending(first.admission));
      meter.spent(first.owner, ["day"]);
      const admitted = async () => {
        const { admission } = request(claims);
        await meter.admit(request({ ...claims, operation: "lb", admission }));
        return admission;
      };
      const told = (admission: string) => meter.settle(ending(admission));
      for (let time = 0; time < ended; time++) told(await admitted());
      const job = await admitted();
      const before = used(meter);
      refuseWrites(state, write);
      const end = () => told(job);
      expect(end).toThrow("disk");
      expect(used(meter)).toEqual(before);
      expect(used(wake(state, world))).toEqual(before);
      state.storage.sql.exec("DROP TRIGGER broken");
      expect(end()).toMatchObject({ first: true, chargedMicroUsd: 15_000 });
      expect(end()).toMatchObject({ first: false, chargedMicroUsd: 15_000 });
      expect(used(meter)).toMatchObject({ known: (ended + 2) * 15_000, reserved: 0, jobs: 0 });
      expect(used(wake(state, world))).toEqual(used(meter));
      expect(meter.spent(first.owner, ["day"])).toMatchObject([{ jobs: ended + 2 }]);
    }),
  );
});

describe("an admission that cannot be written", () => {
  it.each([
    ["its row", "jobs", undefined],
    ["what is beside its row", "idempotency", { key: "k", fingerprint: "f" }],
  ])("changes nothing: %s", (_what, table, idempotency) =>
    withMeter(world, async (meter, state) => {
      await meter.admit(request(claims));
      await meter.admit(request({ ...claims, idempotency: { key: "before", fingerprint: "f" } }));
      const before = used(meter);
      refuseWrites(state, `INSERT ON ${table}`);
      const job = request({ ...claims, idempotency });
      await expect(async () => meter.admit(job)).rejects.toThrow("disk");
      expect(meter.job(job.admission)).toBeUndefined();
      expect(used(meter)).toEqual(before);
      expect(used(wake(state, world))).toEqual(before);
      state.storage.sql.exec("DROP TRIGGER broken");
      expect(await meter.admit(job)).toMatchObject({ admitted: true });
      expect(used(meter)).toMatchObject({ "requests-minute": 3, reserved: 60_000 });
    }),
  );
});
