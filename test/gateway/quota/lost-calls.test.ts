// Clocks, lost calls and objects that hang: what each did to the books, as a test named after the fault.
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { remote } from "../../../src/durable/remote.ts";
import { type Budget, budgetName, type LeaseAnswer } from "../../../src/gateway/quota/budget.ts";
import { BudgetSlices } from "../../../src/gateway/quota/budget-slices.ts";
import { Leases } from "../../../src/gateway/quota/leases.ts";
import { dayOf } from "../../../src/gateway/quota/periods.ts";
import type { AskUpstream, UpstreamAnswer } from "../../../src/gateway/quota/upstream-poll.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { codeOf, ending, meterOf, noon, request, stubOf } from "./admissions.ts";
import { newWorld, wake as wakeMeter } from "./planted-meter.ts";

const payer = "user:ada";
const minuteMs = 60_000;
const dayMs = 86_400_000;
const usd = 1_000_000;
const meter = () => meterOf(payer);
const at = (now: number, name = payer) =>
  runInDurableObject(stubOf(name), (object) => {
    object.clock = () => now;
  });
const ring = (name = payer) => runDurableObjectAlarm(stubOf(name));
const claims = { plan: "unlimited", planFrom: "token" as const, plans: "{}", token: undefined };
const totals = async () => (await meter().usage(claims)).totals;
const few = { plan: "few", planFrom: "token" as const, plans: JSON.stringify({ few: [{ unit: "jobs", limit: 1 }] }) };
const answering = (ask: AskUpstream) =>
  runInDurableObject(stubOf(payer), (object) => {
    object.ask = ask;
  });
const budget = () => remote<Budget>(env.BUDGET, budgetName);
const budgetClock = (now: number) =>
  runInDurableObject(env.BUDGET.getByName(budgetName), (object) => {
    object.clock = () => now;
  });

async function accepted(change: Parameters<typeof request>[0] = {}) {
  const job = request(change);
  expect(await meter().admit(job)).toMatchObject({ admitted: true });
  await meter().bind([{ admission: job.admission, upstreamId: "job-1" }]);
  return job;
}

beforeEach(async () => {
  vi.spyOn(console, "warn").mockReturnValue();
  vi.spyOn(console, "error").mockReturnValue();
  await at(noon);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("fault H3: a call whose answer is lost", () => {
  it("an admission that is released after all leaves place, money and key free", async () => {
    const job = request({ ...few, idempotency: { key: "k", fingerprint: "f" } });
    await meter().admit(job);
    for (let time = 0; time < 3; time++) await meter().release(job.admission);
    expect(await meter().admit({ ...job, admission: request().admission })).toMatchObject({ admitted: true });
    await at(noon + 11 * minuteMs);
    expect(await totals()).toEqual({ known: 0, assumed: 20_000, reserved: 0 });
  });

  it("a release that overtakes its admission leaves nothing of it, for a minute", async () => {
    const job = request(few);
    await meter().release(job.admission);
    expect(codeOf(await meter().admit(job))).toBe("METER_UNAVAILABLE");
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
    await at(noon + minuteMs);
    expect(await meter().admit(job)).toMatchObject({ admitted: true });
  });

  it("a release overtakes an admission that waits for the budget", async () => {
    await budget().setCeilings({ dayMicroUsd: usd, monthMicroUsd: null });
    await budgetClock(noon);
    const job = request({ hasCeiling: true });
    const [answer] = await Promise.all([meter().admit(job), meter().release(job.admission)]);
    expect(codeOf(answer)).toBe("METER_UNAVAILABLE");
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
  });

  it("bindings that rode on a call may be told again, in any order, and ride on a refusal too", async () => {
    const [first, second] = [request(), request()];
    for (const job of [first, second]) await meter().admit(job);
    const binds = [
      { admission: first.admission, upstreamId: "job-1" },
      { admission: second.admission, upstreamId: "job-2" },
    ];
    await meter().admit(request({ plan: "none", plans: '{"none":[{"unit":"jobs","limit":0}]}', binds }));
    await meter().bind(binds.toReversed());
    await meter().settle(ending(first.admission), [{ admission: first.admission, upstreamId: "another" }]);
    expect(await meter().job(first.admission)).toMatchObject({ upstreamId: "job-1", costMicroUsd: 15_000 });
    expect(await meter().job(second.admission)).toMatchObject({ upstreamId: "job-2" });
  });
});

describe("fault M4: a short ttl's end is not asked for", () => {
  /** The alarm rings when it is due, and is told what the model service says so long after noon. */
  async function pass(forMs: number, says: (afterMs: number) => UpstreamAnswer): Promise<void> {
    let afterMs = 0;
    await answering(async () => says(afterMs));
    for (; afterMs <= forMs; afterMs += 1000) {
      await at(noon + afterMs);
      const due = await runInDurableObject(stubOf(payer), (_object, { storage }) => storage.getAlarm());
      if (due !== null && due <= noon + afterMs) await ring();
    }
  }

  it.each([20_000, minuteMs])(
    "a job of %s ms is asked about at its ttl, and before its end is assumed",
    async (ttlMs) => {
      const moments: number[] = [];
      await accepted({ ttlMs, retentionMs: minuteMs });
      await pass(ttlMs + 2 * minuteMs, (afterMs) => {
        moments.push(afterMs);
        if (afterMs >= ttlMs) return "unreachable";
        return { status: "IN_PROGRESS", costMicroUsd: null, completedAt: noon };
      });
      expect(moments).toContain(ttlMs);
      expect(moments).toContain(ttlMs + minuteMs);
      expect(await totals()).toEqual({ known: 0, assumed: 20_000, reserved: 0 });
    },
  );

  it.each([20_000, minuteMs])(
    "attack: the model service is away at the end of a job of %s ms, and has its result a little later",
    async (ttlMs) => {
      await accepted({ ttlMs, retentionMs: minuteMs });
      await pass(ttlMs + 3 * minuteMs, (afterMs) =>
        afterMs < ttlMs + 75_000
          ? "unreachable"
          : { status: "COMPLETED", costMicroUsd: 9000, completedAt: noon, body: "{}" },
      );
      expect(await totals()).toEqual({ known: 9000, assumed: 0, reserved: 0 });
    },
  );

  it("what the last question tells is no assumption", async () => {
    await accepted({ ttlMs: 20_000, retentionMs: minuteMs });
    await answering(async () => ({ status: "COMPLETED", costMicroUsd: 1000, completedAt: noon + 19_000, body: "{}" }));
    await at(noon + 20_000 + minuteMs);
    await ring();
    expect(await totals()).toEqual({ known: 1000, assumed: 0, reserved: 0 });
  });

  it("a retry that was never bound is asked about by the id that it was admitted for", async () => {
    const first = await accepted();
    await meter().settle(ending(first.admission, { status: "FAILED" }));
    const upstreamId = "job-1";
    const retry = request({ operation: "retry", retryOf: { admission: first.admission, upstreamId } });
    await meter().admit(retry);
    const asked = vi.fn<AskUpstream>(async () => ({ status: "COMPLETED", costMicroUsd: 7000, completedAt: noon }));
    await answering(asked);
    await at(noon + 10 * minuteMs);
    await ring();
    expect(asked).toHaveBeenCalledOnce();
    expect(await totals()).toEqual({ known: 7000, assumed: 0, reserved: 0 });
  });
});

describe("retries whose answers are all lost, of a job that the upstream never tells of again", () => {
  const retryOf = (admission: string) =>
    request({ operation: "retry", retryOf: { admission, upstreamId: "job-1" }, hasNotice: false });

  it.each(["FAILED", "COMPLETED"] as const)("are one charge, after it %s", async (status) => {
    const first = await accepted();
    await meter().settle(ending(first.admission, { status, costMicroUsd: 7000 }));
    const retries = [retryOf(first.admission), retryOf(first.admission), retryOf(first.admission)];
    for (const retry of retries) {
      expect(await meter().admit(retry)).toMatchObject({ admitted: true });
      await meter().doubt(retry.admission);
    }
    await answering(async () => "unreachable");
    await at(noon + 20 * minuteMs);
    await ring();
    const inDoubt = { known: 0, assumed: 0, reserved: 0 };
    const stated = { known: 7000, assumed: 0, reserved: 0 };
    expect(await totals()).toEqual(status === "FAILED" ? inDoubt : stated);
    // And what is known of it at last is its one cost.
    const truth = { upstreamId: "job-1", askedAt: noon + 30 * minuteMs, costMicroUsd: 9000 };
    await meter().settle(ending(first.admission, { status: "COMPLETED", ...truth }));
    expect(await totals()).toEqual(status === "FAILED" ? { ...stated, known: 9000 } : stated);
  });
});

describe("fault M5: a lost binding", () => {
  it("does not free the key for a second job", async () => {
    const job = request({ idempotency: { key: "k", fingerprint: "f" } });
    await meter().admit(job);
    await at(noon + 10 * minuteMs);
    await totals();
    const again = { ...job, admission: request().admission };
    const replay = { admission: job.admission, upstreamId: null };
    expect(await meter().admit(again)).toEqual({ admitted: false, replay });
    await at(noon + dayMs);
    expect(await meter().admit(again)).toMatchObject({ admitted: true });
  });
});

describe("fault M8: a budget that hangs", () => {
  it("is one that cannot be reached, and is asked again", async () => {
    const leases = new Leases();
    const hanging = {
      lease: vi.fn(() => new Promise<never>(() => {})),
      report: vi.fn(() => new Promise<never>(() => {})),
    };
    const counted = { leases, counters: { consumed: () => 0 }, transaction: <T>(work: () => T) => work() };
    const slices = new BudgetSlices("a", counted, () => hanging, 5);
    const ask = () =>
      slices.admit({
        needed: 1,
        mostMicroUsd: () => 1,
        day: () => dayOf(noon),
        clock: () => noon,
        again: () => undefined,
      });
    expect((await Promise.all([ask(), ask()])).map(codeOf)).toEqual(["METER_UNAVAILABLE", "METER_UNAVAILABLE"]);
    leases.postpone(dayOf(noon), noon);
    await slices.report(() => noon);
    expect(codeOf(await ask())).toBe("METER_UNAVAILABLE");
    expect(hanging.lease).toHaveBeenCalledTimes(2);
    expect(hanging.report).toHaveBeenCalledOnce();
  });
});

it("fault: a report that waits for a budget that hangs rings for nothing meanwhile", async () => {
  const world = newWorld(noon);
  await runInDurableObject(stubOf("user:ada"), async (_object, state) => {
    const planted = wakeMeter(state, world);
    await planted.admit(request());
    const [asked, hung] = [Promise.withResolvers<void>(), Promise.withResolvers<LeaseAnswer>()];
    world.lease = () => {
      asked.resolve();
      return hung.promise;
    };
    const waiting = planted.admit(request({ hasCeiling: true }));
    await asked.promise;
    world.now += 90_000;
    await planted.alarm();
    expect(Number(await state.storage.getAlarm())).toBeGreaterThan(world.now + 1000);
    hung.resolve({ granted: true, allowanceMicroUsd: null, leaseMs: 60_000 });
    expect(await waiting).toMatchObject({ admitted: true });
  });
});

describe("fault M10: a day that is reported late", () => {
  it("is not counted again once its rows are gone", async () => {
    const day = dayOf(noon);
    await budgetClock(noon);
    await budget().report("a", [{ day, consumedMicroUsd: 20 * usd }]);
    await budgetClock(noon + 9 * dayMs);
    await budget().report("a", [{ day, consumedMicroUsd: 19 * usd }]);
    await budgetClock(noon + 10 * dayMs);
    await budget().report("b", [{ day: day + 10, consumedMicroUsd: 0 }]);
    for (let time = 0; time < 2; time++) await budget().report("a", [{ day, consumedMicroUsd: 18 * usd }]);
    expect((await budget().state()).month.consumedMicroUsd).toBe(19 * usd);
  });
});

describe("fault M15: a budget that is away, and no ceiling", () => {
  it("stops nobody, and a ceiling that is set at noon knows the morning", async () => {
    await budgetClock(noon);
    const lease = vi.spyOn(BudgetSlices.prototype, "admit");
    for (let time = 0; time < 3; time++) await accepted();
    expect(lease).not.toHaveBeenCalled();
    await at(noon + minuteMs);
    await ring();
    expect((await budget().state()).day).toMatchObject({ consumedMicroUsd: 60_000, leasedMicroUsd: 0 });
    await budget().setCeilings({ dayMicroUsd: 70_000, monthMicroUsd: null });
    expect(codeOf(await meter().admit(request({ hasCeiling: true })))).toBe("QUOTA_EXCEEDED");
    expect(await meter().admit(request({ hasCeiling: true, reserveMicroUsd: 10_000 }))).toMatchObject({
      admitted: true,
    });
  });

  it("is reported to also by a meter that slept in between", async () => {
    await budgetClock(noon);
    await accepted();
    await evictDurableObject(stubOf(payer));
    await at(noon + minuteMs);
    await ring();
    expect((await budget().state()).day.consumedMicroUsd).toBe(20_000);
  });
});

it("fault: a doubt that is told before an eviction wedges no meter", async () => {
  const job = request();
  await meter().admit(job);
  await meter().doubt(job.admission);
  await evictDurableObject(stubOf(payer));
  await at(noon + 2 * minuteMs);
  await ring();
  expect((await totals()).reserved).toBe(0);
  expect(await meter().admit(request())).toMatchObject({ admitted: true });
});

describe("fault L4: a budget that is behind midnight already", () => {
  it("lets a meter that is before it wait for its own midnight", async () => {
    const midnight = Math.ceil(noon / dayMs) * dayMs;
    await budget().setCeilings({ dayMicroUsd: 10_000, monthMicroUsd: null });
    await budgetClock(midnight + 10);
    await at(midnight - 10);
    expect(await meter().admit(request({ hasCeiling: true }))).toMatchObject({
      code: "QUOTA_EXCEEDED",
      retryAfterSeconds: 1,
    });
  });
});

describe("fault L5: a token that a host ahead of the operator's minted", () => {
  it.each([
    ["a second before, by a clock two seconds ahead", noon - 1000 + 2000, "TOKEN_REVOKED"],
    ["in the same moment, by a clock five seconds ahead", noon + 5000, "TOKEN_REVOKED"],
    ["afterwards", noon + 5001, undefined],
  ])("is revoked with all the others, where it was minted %s", async (_when, issuedAt, code) => {
    await meter().revoke("user:ada", noon);
    expect(codeOf(await meter().admit(request({ bearer: { issuedAt, tokenId: "jti" } })))).toBe(code);
  });
});

describe("fault L6: an alarm that is three hours late", () => {
  it("holds no places and no money by what is over, and asks nevertheless", async () => {
    for (let time = 0; time < 10; time++) await accepted({ ttlMs: 60 * minuteMs });
    await answering(async () => ({ status: "COMPLETED", costMicroUsd: 1000, completedAt: noon, body: "{}" }));
    await at(noon + 4 * 60 * minuteMs);
    const { limits, totals: sums } = await meter().usage({ ...claims, ...few });
    expect(limits.map(({ used }) => used)).toEqual([0]);
    expect(sums).toEqual({ known: 0, assumed: 200_000, reserved: 0 });
    expect(await meter().admit(request(few))).toMatchObject({ admitted: true });
    for (let time = 0; time < 2; time++) await ring();
    expect(await totals()).toEqual({ known: 10_000, assumed: 0, reserved: 20_000 });
  });

  it("leaves what its last question is out for", async () => {
    const job = await accepted({ ttlMs: 60 * minuteMs });
    await at(noon + 61 * minuteMs + 59_000);
    expect(await meter().job(job.admission)).toMatchObject({ endedAt: null });
    await at(noon + 62 * minuteMs);
    expect(await meter().job(job.admission)).toMatchObject({ isAssumed: true });
  });
});

describe("a clock that jumps by weeks", () => {
  it("counts the days that were given up from their rows again", async () => {
    const job = await accepted();
    await at(noon + 40 * dayMs);
    await ring();
    await at(noon);
    expect(await meter().audit()).toEqual([]);
    await accepted({ ...few, plan: "unlimited" });
    const day = {
      plan: "day",
      planFrom: "token" as const,
      plans: '{"day":[{"unit":"usd","limit":1,"per":"day"}]}',
      token: undefined,
    };
    const spent = (await meter().job(job.admission))?.costMicroUsd ?? 20_000;
    expect((await meter().usage(day)).limits.map(({ used }) => used)).toEqual([20_000 + spent]);
    expect(await meter().audit()).toEqual([]);
  });
});
