// A large body that is admitted before midnight and read after it: its money counts on the day that it was admitted on.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { remote } from "../../../src/durable/remote.ts";
import { type Budget, budgetName } from "../../../src/gateway/quota/budget.ts";
import type { AdmitRequest, Amendment } from "../../../src/gateway/quota/metering.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { codeOf, ending, meterOf, request, stubOf } from "./admissions.ts";

const payer = "user:ada";
const meter = () => meterOf(payer);
const budget = () => remote<Budget>(env.BUDGET, budgetName);
const cases = [
  ["midnight", Date.UTC(2031, 5, 17)],
  ["a month's end", Date.UTC(2031, 6, 1)],
  ["a year's end", Date.UTC(2032, 0, 1)],
] as const;
const usd = 1_000_000;

/** The clock of the meter, and of the budget. */
async function at(now: number): Promise<void> {
  await runInDurableObject(stubOf(payer), (object) => {
    object.clock = () => now;
  });
  await runInDurableObject(env.BUDGET.getByName(budgetName), (object: Budget) => {
    object.clock = () => now;
  });
}

const rules = [
  { unit: "usd", limit: 1, per: "day" },
  { unit: "usd", limit: 1, per: "month" },
] as const;
const limited = { plan: "limited", planFrom: "token", plans: JSON.stringify({ limited: rules }) } as const;
const claims = { ...limited, token: undefined };
const termsOf = ({ hasCeiling }: AdmitRequest): Amendment["terms"] => ({ ...claims, hasCeiling });
const amend = (job: AdmitRequest, reserveMicroUsd: number) =>
  meter().amend(job.admission, { terms: termsOf(job), reserveMicroUsd, inputBytes: 400 });
/** What the rules see of the day and of the month that it is now. */
const used = async () => (await meter().usage(claims)).limits.map((limit) => limit.used);
const audit = async () => expect(await meter().audit()).toEqual([]);

beforeEach(() => {
  vi.spyOn(console, "warn").mockReturnValue();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe.each(cases)("attack A5: a body that is read over %s", (_name, midnight) => {
  const isMonth = new Date(midnight).getUTCDate() === 1;

  it("is counted on the day that it was admitted on", async () => {
    await at(midnight - 100);
    const job = request({ ...limited, reserveMicroUsd: 1000 });
    await meter().admit(job);
    await at(midnight + 100);
    expect(await amend(job, 900_000)).toMatchObject({ admitted: true });
    expect(await used()).toEqual([0, isMonth ? 0 : 900_000]);
    await audit();
    await at(midnight - 1);
    expect(await used()).toEqual([900_000, 900_000]);
    await at(midnight + 200);
    await meter().settle(ending(job.admission, { costMicroUsd: 5000 }));
    expect(await used()).toEqual([0, isMonth ? 0 : 5000]);
    await audit();
  });

  it("is refused by what that day has left, and not by what the new one has", async () => {
    await at(midnight - 200);
    await meter().admit(request({ ...limited, reserveMicroUsd: 600_000 }));
    const job = request({ ...limited, reserveMicroUsd: 1000 });
    await meter().admit(job);
    await at(midnight + 100);
    const refused = await amend(job, 500_000);
    expect(codeOf(refused)).toBe("QUOTA_EXCEEDED");
    expect(refused).toMatchObject({ retryAfterSeconds: isMonth ? 1 : expect.any(Number) });
    await meter().release(job.admission);
    await at(midnight - 1);
    expect(await used()).toEqual([600_000, 600_000]);
    await audit();
  });

  it("asks the app's budget for that day, once", async () => {
    await budget().setCeilings({ dayMicroUsd: usd, monthMicroUsd: usd });
    await at(midnight - 100);
    const job = request({ ...limited, hasCeiling: true, reserveMicroUsd: 1000 });
    expect(await meter().admit(job)).toMatchObject({ admitted: true });
    const leased = vi.spyOn(env.BUDGET, "getByName");
    // The slice of the day before is over a minute after it was leased.
    await at(midnight + 120_000);
    expect(await amend(job, 900_000)).toMatchObject({ admitted: true });
    expect(leased.mock.calls.length).toBeLessThan(5);
    await at(midnight - 1);
    expect((await budget().state()).day.consumedMicroUsd + (await budget().state()).day.leasedMicroUsd).toBe(900_000);
    await audit();
  });

  it("is refused by the app's ceiling of that day", async () => {
    await budget().setCeilings({ dayMicroUsd: usd / 2, monthMicroUsd: null });
    await at(midnight - 100);
    const job = request({ ...limited, hasCeiling: true, reserveMicroUsd: 1000 });
    await meter().admit(job);
    await at(midnight + 120_000);
    expect(await amend(job, 600_000)).toMatchObject({ admitted: false, code: "QUOTA_EXCEEDED", retryAfterSeconds: 1 });
    // The new day is nobody's yet.
    expect(await meter().admit(request({ ...limited, hasCeiling: true, reserveMicroUsd: 400_000 }))).toMatchObject({
      admitted: true,
    });
    await audit();
  });
});
