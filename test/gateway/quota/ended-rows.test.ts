// Rows of ended jobs are moved together, and the oldest go when there are too many. Each test is named after what once got
// lost, or was counted twice, on the way.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import { plansText } from "../../../src/gateway/operator-settings/plans.ts";
import type { Rule } from "../../../src/gateway/operator-settings/rules.ts";
import type { AdmitRequest, Ending } from "../../../src/gateway/quota/metering.ts";
import type { UserMeter } from "../../../src/gateway/quota/user-meter.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { codeOf, ending, noon, request } from "./admissions.ts";
import { newWorld, refuseWrites, wake, withMeter } from "./planted-meter.ts";

const dayMs = 86_400_000;
const owner = "user:ada";
const world = newWorld(noon);
const claimsOf = (rules: Rule[]) =>
  ({ plan: "tested", planFrom: "token", plans: plansText({ tested: rules }), token: undefined }) as const;
const claims = claimsOf([{ unit: "usd", limit: 10_000, per: "day" }]);

let count = 0;
async function admitted(meter: UserMeter, change: Partial<AdmitRequest> = {}): Promise<string> {
  count += 1;
  const { admission } = request({ admission: newAdmission(world.now + count) });
  expect(await meter.admit(request({ ...claims, operation: "lb", ...change, admission }))).toMatchObject({
    admitted: true,
  });
  meter.bind([{ admission, upstreamId: `job-${admission}` }]);
  return admission;
}

const end = (meter: UserMeter, admission: string, change: Partial<Ending> = {}) =>
  meter.settle(ending(admission, { upstreamId: `job-${admission}`, ...change }));

const assumed = { status: "CANCELLED", costMicroUsd: null } as const;
async function fill(meter: UserMeter, jobs: number, change: Partial<Ending> = {}): Promise<void> {
  for (let time = 0; time < jobs; time++) end(meter, await admitted(meter), change);
}

/** As many as one of them, or of the state's counters, say. */
const keptRows = ({ storage: { sql } }: DurableObjectState) => {
  const { json } = sql.exec<{ json: string }>("SELECT json FROM state").one();
  const query = "SELECT SUM(1 - assumed) AS known, SUM(assumed) AS assumed FROM ended";
  return { counted: (JSON.parse(json) as { ended: unknown }).ended, rows: sql.exec(query).one() };
};

beforeEach(() => {
  vi.spyOn(console, "warn").mockReturnValue();
  world.now = noon;
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("a row that is in hand while others go", { timeout: 30_000 }, () => {
  it("is not written again after it went: told of its end", () =>
    withMeter(world, async (meter, state) => {
      const first = await admitted(meter);
      end(meter, first, { costMicroUsd: null, isUntold: true });
      await fill(meter, 3039, assumed);
      meter.spent(owner, ["day"]);
      await fill(meter, 10, assumed);
      end(meter, first);
      const { counted, rows } = keptRows(state);
      expect(rows).toEqual(counted);
      expect(meter.recount().off).toEqual([]);
    }));

  it("is not written again after it went: its webhook's body handed more out", () =>
    withMeter(world, async (meter, state) => {
      const webhook = "https://example.com/hook";
      const first = await admitted(meter, { model: "granite-4-0-h-small", kind: "text", webhook });
      meter.handOut(first, { upstreamId: null, pieces: 3, textBytes: 100, whole: true });
      end(meter, first, assumed);
      await fill(meter, 3039, assumed);
      meter.spent(owner, ["day"]);
      await fill(meter, 10, assumed);
      meter.notify(first, JSON.stringify({ status: "CANCELLED", output: "x".repeat(5000) }));
      const { counted, rows } = keptRows(state);
      expect(rows).toEqual(counted);
      expect(meter.recount().off).toEqual([]);
    }));

  it.each([
    ["by the end itself", 1049, 0],
    ["by a later end", 1048, 1],
  ])("keeps its webhook, though it outlived a thousand others: %s", (_what, before, after) =>
    withMeter(world, async (meter, { storage: { sql } }) => {
      const long = await admitted(meter, { operation: "run", webhook: "https://example.com/hook" });
      await fill(meter, before);
      expect(end(meter, long)).toMatchObject({ first: true, wantsNotice: true });
      await fill(meter, after);
      meter.spent(owner, ["day"]);
      expect(meter.job(long)).toMatchObject({ status: "COMPLETED" });
      meter.notify(long, "{}");
      expect(sql.exec("SELECT admission FROM outbox").toArray()).toEqual([{ admission: long }]);
    }),
  );
});

it("a job that ended last stays, though it began before a thousand others", { timeout: 30_000 }, () =>
  withMeter(world, async (meter) => {
    const long = await admitted(meter);
    await fill(meter, 1049);
    world.now += 60_000;
    end(meter, long, { completedAt: world.now });
    await fill(meter, 1);
    meter.spent(owner, ["day"]);
    expect(meter.job(long)).toMatchObject({ status: "COMPLETED" });
    expect(meter.jobs(owner, undefined, 0, 1)).toMatchObject({ total: 1001 });
  }),
);

describe("an end in one statement", () => {
  it.each<[string, Partial<Ending>]>([
    ["half a micro-USD", { costMicroUsd: null, assumedMicroUsd: 0.5 }],
    ["no moment", { completedAt: Number.NaN }],
  ])("writes nothing that its table would refuse later: %s", (_what, change) =>
    withMeter(world, async (meter, state) => {
      const job = await admitted(meter);
      expect(() => end(meter, job, change)).toThrow("no amount");
      for (const one of [meter, wake(state, world)]) {
        expect(one.usage(claims).totals).toEqual({ known: 0, assumed: 0, reserved: 20_000 });
      }
      await admitted(meter, { idempotency: { key: "k", fingerprint: "f" } });
    }),
  );

  it("is in the day's sums, though the clock ran ahead when its row was moved", () =>
    withMeter(world, async (meter) => {
      await fill(meter, 1);
      meter.spent(owner, ["day"]);
      await fill(meter, 1);
      world.now = noon + 36 * dayMs;
      await admitted(meter, { idempotency: { key: "k", fingerprint: "f" } });
      world.now = noon + 1000;
      expect(meter.spent(owner, ["day"])).toMatchObject([{ jobs: 2, knownMicroUsd: 30_000 }]);
    }));

  it("is in the list of jobs, once, also while storage takes no write", () =>
    withMeter(world, async (meter, state) => {
      await fill(meter, 2);
      const listed = () => meter.jobs(owner, undefined, 0, 10);
      refuseWrites(state, "INSERT ON state");
      expect(listed()).toMatchObject({ total: 2, jobs: [{ status: "COMPLETED" }, { status: "COMPLETED" }] });
      state.storage.sql.exec("DROP TRIGGER broken");
      meter.spent(owner, ["day"]);
      expect(listed()).toMatchObject({ total: 2, jobs: [{ status: "COMPLETED" }, { status: "COMPLETED" }] });
    }));
});

describe("a clock that ran ahead and came back", { timeout: 30_000 }, () => {
  it("gives a token no second day's money", () =>
    withMeter(world, async (meter) => {
      const token = { id: "narrow", rules: [{ unit: "usd", limit: 0.05, per: "day" } satisfies Rule] };
      await admitted(meter, { token });
      world.now = noon + 20 * dayMs;
      await admitted(meter, { token, idempotency: { key: "k", fingerprint: "f" } });
      world.now = noon + 1000;
      await admitted(meter, { token });
      expect(codeOf(await meter.admit(request({ ...claims, token })))).toBe("QUOTA_EXCEEDED");
    }));

  it("loses no money of rows that are gone by a recount", () =>
    withMeter(world, async (meter) => {
      const jobs = 1060;
      const limited = claimsOf([{ unit: "usd", limit: (jobs * 15_000) / 1e6, per: "day" }]);
      world.now = noon + 12 * dayMs;
      await admitted(meter, { reserveMicroUsd: 0 });
      await meter.alarm();
      world.now = noon;
      for (let time = 0; time < jobs; time++) {
        end(meter, await admitted(meter, { ...limited, reserveMicroUsd: 15_000 }));
      }
      expect(meter.recount().off).toEqual([]);
      expect(codeOf(await meter.admit(request({ ...limited, reserveMicroUsd: 15_000 })))).toBe("QUOTA_EXCEEDED");
    }));
});
