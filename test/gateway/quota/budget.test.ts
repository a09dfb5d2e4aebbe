// The ceiling of the whole app: slices are deducted before they are used, and what is not used comes back.
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { remote } from "../../../src/durable/remote.ts";
import { type Budget, budgetName } from "../../../src/gateway/quota/budget.ts";
import type { AdmitRequest } from "../../../src/gateway/quota/metering.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { codeOf, ending, meterOf, noon, request, stubOf } from "./admissions.ts";

const usd = 1_000_000;
const reserveMicroUsd = 20_000;
const budgetStub = () => env.BUDGET.getByName(budgetName);
const budget = () => remote<Budget>(env.BUDGET, budgetName);
const setClocks = async (now: number, ...payers: string[]) => {
  await runInDurableObject(budgetStub(), (object) => {
    object.clock = () => now;
  });
  await Promise.all(
    payers.map((payer) =>
      runInDurableObject(stubOf(payer), (object) => {
        object.clock = () => now;
      }),
    ),
  );
};
const admit = (payer: string, change: Partial<AdmitRequest> = {}) =>
  meterOf(payer).admit(request({ owner: payer, reserveMicroUsd, hasCeiling: true, ...change }));
const ceiling = (dayMicroUsd: number | null, monthMicroUsd: number | null = null) =>
  budget().setCeilings({ dayMicroUsd, monthMicroUsd });

beforeEach(async () => {
  vi.spyOn(console, "warn").mockReturnValue();
  vi.spyOn(console, "error").mockReturnValue();
  await setClocks(noon, "a", "b");
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("the app's budget", () => {
  it("fault: a day that is over goes a few rows at a time, and a recount takes the rest for no whole day", async () => {
    const [today, over] = [Math.floor(noon / 86_400_000), Math.floor(noon / 86_400_000) - 10];
    const rows = () =>
      runInDurableObject(budgetStub(), (_, { storage: { sql } }) =>
        Number(sql.exec("SELECT COUNT(*) AS count FROM leases WHERE day = ?", over).one()["count"]),
      );
    await runInDurableObject(budgetStub(), (_, { storage: { sql } }) => {
      const numbers = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 120)";
      sql.exec(`INSERT INTO leases ${numbers} SELECT ?, 'm' || n, 5, 5 FROM n`, over);
      sql.exec("INSERT INTO days VALUES (?, 600, 0)", over);
    });
    for (const left of [70, 20, 0]) {
      await budget().report(`meter-${left}`, [{ day: today, consumedMicroUsd: 1 }]);
      expect(await rows()).toBe(left);
      expect(await budget().recount()).toEqual([]);
    }
  });

  it("is no ceiling where none is set, and counts nevertheless", async () => {
    expect(await admit("a")).toMatchObject({ admitted: true });
    await setClocks(noon + 60_000, "a");
    await runDurableObjectAlarm(stubOf("a"));
    expect((await budget().state()).day).toMatchObject({ consumedMicroUsd: reserveMicroUsd, leasedMicroUsd: 0 });
  });

  it.each([
    ["day", 50_000, null],
    ["month", 10 * usd, 50_000],
  ])("refuses what exceeds the %s's", async (period, day, month) => {
    await ceiling(day, month);
    expect(await admit("a")).toMatchObject({ admitted: true });
    expect(await admit("b")).toMatchObject({ admitted: true });
    const refused = await admit("b");
    expect(codeOf(refused)).toBe("QUOTA_EXCEEDED");
    expect(refused).toMatchObject({ detail: expect.stringContaining(`app-usd-${period}`) });
    expect(await admit("b", { reserveMicroUsd: 10_000 })).toMatchObject({ admitted: true });
    expect(await admit("b", { reserveMicroUsd: 0 })).toMatchObject({ admitted: true });
  });

  it("gets back what a lease did not use, once the lease is over", async () => {
    await ceiling(10_000 * usd);
    await admit("a");
    const { leasedMicroUsd } = (await budget().state()).day;
    /** The budget hears only later that one of the twenty is used. */
    expect(leasedMicroUsd).toBe(20 * reserveMicroUsd);
    await setClocks(noon + 59_999, "a");
    await runDurableObjectAlarm(stubOf("a"));
    expect((await budget().state()).day.leasedMicroUsd).toBe(leasedMicroUsd);
    await setClocks(noon + 60_000, "a");
    await runDurableObjectAlarm(stubOf("a"));
    expect((await budget().state()).day).toMatchObject({ consumedMicroUsd: reserveMicroUsd, leasedMicroUsd: 0 });
  });

  it.each([
    ["what they cost", 5 * usd, false],
    ["what they cost, from an object that died meanwhile", 5 * usd, true],
    ["that they cost nothing, from one that died", 0, true],
  ])("hears of ended jobs on the day of their admission: %s", async (_what, costMicroUsd, isEvicted) => {
    const job = request({ reserveMicroUsd });
    await meterOf("a").admit(job);
    await setClocks(noon + 60_000, "a");
    await runDurableObjectAlarm(stubOf("a"));
    const tomorrow = noon + 86_400_000;
    await setClocks(tomorrow, "a");
    await meterOf("a").settle(ending(job.admission, { costMicroUsd }));
    if (isEvicted) await evictDurableObject(stubOf("a"));
    await setClocks(tomorrow + 60_000, "a");
    await runDurableObjectAlarm(stubOf("a"));
    const { day, month } = await budget().state();
    expect([day.consumedMicroUsd, month.consumedMicroUsd]).toEqual([0, costMicroUsd]);
  });

  it("starts anew at midnight", async () => {
    await ceiling(reserveMicroUsd);
    await admit("a");
    expect(codeOf(await admit("b"))).toBe("QUOTA_EXCEEDED");
    await setClocks(noon + 43_200_000, "b");
    expect(await admit("b")).toMatchObject({ admitted: true });
  });

  it("is shared by payers at once, and used to the last", async () => {
    await ceiling(30 * reserveMicroUsd);
    const payers = Array.from({ length: 20 }, (_, at) => `payer:${at}`);
    await setClocks(noon, ...payers);
    const answers = await Promise.all(payers.flatMap((payer) => [admit(payer), admit(payer)]));
    expect(answers.filter(({ admitted }) => admitted)).toHaveLength(30);
  });

  it("is asked a few times for many that wait at one meter", async () => {
    await ceiling(100 * reserveMicroUsd);
    const answers = await Promise.all(Array.from({ length: 200 }, () => admit("a")));
    expect(answers.filter(({ admitted }) => admitted)).toHaveLength(100);
  });
});
