// What attackers did to the books, each as a test named after it.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { JobState } from "../../../src/contract/states.ts";
import { networkOf } from "../../../src/gateway/identity/address.ts";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import { plansText } from "../../../src/gateway/operator-settings/plans.ts";
import { budgetName } from "../../../src/gateway/quota/budget.ts";
import type { AdmitRequest, Hit } from "../../../src/gateway/quota/metering.ts";
import { Network } from "../../../src/gateway/quota/network.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { codeOf, ending, meterOf, noon, request, stubOf } from "./admissions.ts";

const payer = "user:ada";
const upstreamId = "job-1";
const dayMs = 86_400_000;
const text = { model: "granite-4-0-h-small", kind: "text" } as const;
const meter = () => meterOf(payer);
const clockOf = (name: string, now: number) =>
  runInDurableObject(stubOf(name), (object) => {
    object.clock = () => now;
  });
const at = (now: number) => clockOf(payer, now);
const claims = { plan: "unlimited", planFrom: "token" as const, plans: "{}", token: undefined };
const totals = async () => (await meter().usage(claims)).totals;
const audit = async (name = payer) => expect(await meterOf(name).audit()).toEqual([]);
const tablesOf = (name: string) =>
  runInDurableObject(stubOf(name), (_object, { storage }) => {
    const tables = storage.sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
    return tables.map(({ name }) => name).filter((name) => !name.startsWith("_cf_"));
  });

async function accepted(change: Partial<AdmitRequest> = {}): Promise<AdmitRequest> {
  const job = request(change);
  expect(await meter().admit(job)).toMatchObject({ admitted: true });
  await meter().bind([{ admission: job.admission, upstreamId }]);
  return job;
}

const retrying = (first: AdmitRequest) =>
  accepted({ operation: "retry", retryOf: { admission: first.admission, upstreamId } });

/** As a poll by the first handle tells it. */
const seen = ({ admission }: AdmitRequest, now: number, status: JobState, costMicroUsd: number | null = null) =>
  meter().settle(ending(admission, { upstreamId, status, costMicroUsd, askedAt: now, seenAt: now, completedAt: now }));

beforeEach(async () => {
  vi.spyOn(console, "warn").mockReturnValue();
  vi.spyOn(console, "error").mockReturnValue();
  await at(noon);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("attack C1: a negative picture width", () => {
  const amounts = [-2_400_000_000, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53];

  it.each(amounts)("reserves nothing, and writes nothing: %s", async (reserveMicroUsd) => {
    await runInDurableObject(stubOf(payer), async (object) => {
      await expect(async () => object.admit(request({ reserveMicroUsd }))).rejects.toThrow("no amount");
    });
    expect(await tablesOf(payer)).toEqual([]);
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
  });

  it.each(amounts)("amends nothing: %s", async (reserveMicroUsd) => {
    const { admission } = await accepted();
    await runInDurableObject(stubOf(payer), async (object) => {
      const terms = { ...claims, hasCeiling: false };
      const amend = async () => object.amend(admission, { terms, reserveMicroUsd, inputBytes: 1 });
      await expect(amend).rejects.toThrow("no amount");
    });
    expect(await totals()).toMatchObject({ reserved: 20_000 });
  });

  it("passes no table's check", async () => {
    await accepted();
    await runInDurableObject(stubOf(payer), (_object, { storage: { sql } }) => {
      for (const wrong of [-1, 0.5, "much"]) {
        expect(() => sql.exec("UPDATE jobs SET reserved = ?", wrong)).toThrow("CHECK");
      }
    });
    await runInDurableObject(env.BUDGET.getByName(budgetName), (budget, { storage: { sql } }) => {
      const days = (consumedMicroUsd: number) => [{ day: Math.floor(Date.now() / dayMs), consumedMicroUsd }];
      for (const wrong of amounts) expect(() => budget.report("a", days(wrong))).toThrow("no amount");
      budget.report("a", days(5));
      expect(() => sql.exec("UPDATE leases SET consumed = -1")).toThrow("CHECK");
      expect(() => sql.exec("UPDATE days SET allowed = -1")).toThrow("CHECK");
    });
  });
});

describe("attack C2: one job charged after every retry", () => {
  it("a17: a worker fails twice, and completes: one charge", async () => {
    const first = await accepted();
    await seen(first, noon + 1, "FAILED");
    for (const time of [10, 20]) {
      await at(noon + time);
      await retrying(first);
      const status = time === 20 ? "COMPLETED" : "FAILED";
      for (let again = 0; again < 3; again++) await seen(first, noon + time + 1, status, 500_000);
    }
    expect(await totals()).toEqual({ known: 500_000, assumed: 0, reserved: 0 });
    const { jobs } = await meter().jobs("user:ada", undefined, 0, 10);
    expect(jobs.map(({ costMicroUsd }) => costMicroUsd).toSorted()).toEqual([0, 0, 500_000]);
    await audit();
  });

  it("a16: five retries, told twice each: one charge", async () => {
    const first = await accepted();
    for (let time = 1; time <= 5; time++) {
      await seen(first, noon + time * 10 - 5, "FAILED");
      await seen(first, noon + time * 10 - 5, "FAILED");
      await at(noon + time * 10);
      await retrying(first);
    }
    for (let again = 0; again < 2; again++) await seen(first, noon + 60, "COMPLETED", 500_000);
    expect(await totals()).toEqual({ known: 500_000, assumed: 0, reserved: 0 });
    await audit();
  });

  it("a10: one retry that nobody polled before, then poll and notice: one charge", async () => {
    const first = await accepted();
    await at(noon + 10);
    const retry = await retrying(first);
    await seen(first, noon + 20, "COMPLETED", 500_000);
    await seen(retry, noon + 21, "COMPLETED", 500_000);
    expect(await totals()).toEqual({ known: 500_000, assumed: 0, reserved: 0 });
  });

  it.each([
    ["at a cost", 500_000],
    ["at none", null],
  ])("cancelled %s, and retried: one charge", async (_how, cost) => {
    const first = await accepted();
    await seen(first, noon + 1, "CANCELLED", cost);
    await at(noon + 10);
    await retrying(first);
    await seen(first, noon + 11, "COMPLETED", 500_000);
    expect(await totals()).toEqual({ known: 500_000, assumed: 0, reserved: 0 });
  });

  it.each(["TIMED_OUT", "CANCELLED"] as const)(
    "attack A1: what a run that %s had cost is not forgotten when its retry is cancelled",
    async (status) => {
      const first = await accepted();
      await seen(first, noon + 1, status, 700_000);
      await at(noon + 10);
      await retrying(first);
      await seen(first, noon + 11, "CANCELLED", 0);
      expect(await totals()).toEqual({ known: 700_000, assumed: 0, reserved: 0 });
      await audit();
    },
  );

  it("a retry whose acceptance was never told is settled by what it became", async () => {
    const first = await accepted();
    await seen(first, noon + 1, "FAILED");
    await at(noon + 10);
    const retry = request({ operation: "retry", retryOf: { admission: first.admission, upstreamId } });
    await meter().admit(retry);
    await seen(first, noon + 5, "FAILED");
    expect(await meter().job(retry.admission)).toMatchObject({ endedAt: null });
    await seen(first, noon + 20, "COMPLETED", 500_000);
    expect(await meter().job(retry.admission)).toMatchObject({ status: "COMPLETED", costMicroUsd: 500_000 });
    expect(await totals()).toEqual({ known: 500_000, assumed: 0, reserved: 0 });
  });

  it("a retry that the upstream refused changes nothing of the job before it", async () => {
    const first = await accepted();
    await seen(first, noon + 1, "TIMED_OUT", 7000);
    const retry = request({ operation: "retry", retryOf: { admission: first.admission, upstreamId } });
    await meter().admit(retry);
    await meter().release(retry.admission);
    expect(await totals()).toEqual({ known: 7000, assumed: 0, reserved: 0 });
  });

  it("who rode along on a shared job is no part of its chain", async () => {
    const leader = await accepted();
    const rider = await accepted({ joined: true, reserveMicroUsd: 0 });
    await seen(leader, noon + 1, "FAILED");
    await at(noon + 10);
    await retrying(leader);
    await seen(rider, noon + 20, "COMPLETED", 500_000);
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 20_000 });
    await seen(leader, noon + 21, "COMPLETED", 500_000);
    expect(await totals()).toEqual({ known: 500_000, assumed: 0, reserved: 0 });
  });
});

describe("attack H4: text for nothing", () => {
  const handed = { upstreamId, pieces: 3, textBytes: 40_000, whole: false };
  const job = { ...text, inputBytes: 40_000, reserveMicroUsd: 1_000_000 };

  it.each(["CANCELLED", "TIMED_OUT"] as const)(
    "a3, a18: streamed, then %s: what was handed out is paid",
    async (end) => {
      const asked = await accepted(job);
      await meter().handOut(asked.admission, handed);
      await seen(asked, noon + 1, end);
      const { assumed, known } = await totals();
      expect(assumed).toBeGreaterThan(0);
      expect(known).toBe(0);
      await seen(asked, noon + 2, "CANCELLED", 5);
      expect(await totals()).toEqual({ known: 5, assumed: 0, reserved: 0 });
    },
  );

  it("a14: a queue's last word counts only at the ttl's end, and what was handed out counts anyhow", async () => {
    const asked = await accepted({ ...job, ttlMs: 30_000 });
    await meter().settle(ending(asked.admission, { status: "IN_QUEUE", askedAt: noon + 30_000 }));
    await meter().handOut(asked.admission, handed);
    await at(noon + 30_000 + 121_000);
    expect((await totals()).assumed).toBeGreaterThan(0);
  });

  it("what is told late raises what was assumed, and pieces add up unless they are all there is", async () => {
    const asked = await accepted(job);
    await meter().handOut(asked.admission, handed);
    await seen(asked, noon + 1, "CANCELLED");
    const { assumed } = await totals();
    await meter().handOut(asked.admission, { ...handed, whole: true });
    expect((await totals()).assumed).toBe(assumed);
    await meter().handOut(asked.admission, handed);
    expect((await totals()).assumed).toBeGreaterThan(assumed);
    await audit();
  });

  it.each(["CANCELLED", "TIMED_OUT"] as const)(
    "told by a webhook, of a job that nobody asks about: %s",
    async (end) => {
      const asked = await accepted({ ...job, webhook: "https://app.example/hook" });
      await seen(asked, noon + 1, end);
      expect((await totals()).assumed).toBe(0);
      await meter().notify(asked.admission, JSON.stringify({ status: end, output: ["x".repeat(40_000)] }));
      const { assumed } = await totals();
      expect(assumed).toBeGreaterThan(0);
      await meter().handOut(asked.admission, { ...handed, pieces: 1, whole: true });
      expect((await totals()).assumed).toBe(assumed);
      await audit();
    },
  );

  it("a webhook without output hands nothing out", async () => {
    const asked = await accepted({ ...job, webhook: "https://app.example/hook" });
    await seen(asked, noon + 1, "TIMED_OUT");
    await meter().notify(asked.admission, JSON.stringify({ status: "TIMED_OUT" }));
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
  });

  it("a retry pays for what was handed out before it", async () => {
    const first = await accepted(job);
    await meter().handOut(first.admission, handed);
    await seen(first, noon + 1, "TIMED_OUT");
    const { assumed } = await totals();
    await at(noon + 10);
    await accepted({ ...job, operation: "retry", retryOf: { admission: first.admission, upstreamId } });
    await seen(first, noon + 20, "CANCELLED");
    expect(await totals()).toEqual({ known: 0, assumed, reserved: 0 });
  });
});

describe("attack M4: answers from the cache, without end", () => {
  const hit = (key: string): Hit => ({
    plan: "anonymous",
    planFrom: "token" as const,
    plans: "{}",
    token: undefined,
    hasCeiling: true,
    owner: "user:ada",
    bearer: request().bearer,
    model: "flux",
    kind: "image",
    row: {
      key,
      field: "image_url",
      model: "flux",
      cost: 0,
      size: null,
      completedAt: noon,
      expiresAt: noon + dayMs,
    },
  });

  it("counts each that is new for its owner as a request, once, and asks nobody else", async () => {
    await runInDurableObject(env.BUDGET.getByName(budgetName), () => undefined);
    for (let time = 0; time < 5; time++) {
      expect(await meter().countHit(hit(`key-${time}`))).toMatchObject({ admitted: true });
      expect(await meter().countHit(hit(`key-${time}`))).toMatchObject({ admitted: true });
    }
    expect(codeOf(await meter().countHit(hit("key-5")))).toBe("RATE_LIMITED");
    expect(codeOf(await meter().admit(request({ plan: "anonymous" })))).toBe("RATE_LIMITED");
    expect(await meter().gallery("user:ada", undefined, 10)).toHaveLength(5);
    const { limits } = await meter().usage({ ...claims, plan: "anonymous" });
    expect(limits.filter(({ used }) => used > 0).map(({ name, used }) => [name, used])).toEqual([
      ["requests-minute", 5],
      ["requests-day", 5],
    ]);
  });

  it("refuses a token that was revoked", async () => {
    await meter().revoke("user:ada", noon);
    expect(codeOf(await meter().countHit(hit("key")))).toBe("TOKEN_REVOKED");
  });
});

describe("attack M5, attack L1: an upstream that refuses, or says nothing of use", () => {
  const few = { plan: "few", planFrom: "token" as const, plans: JSON.stringify({ few: [{ unit: "jobs", limit: 1 }] }) };

  it("in doubt the place is free at once, the money in a minute, and nothing is charged", async () => {
    const job = request(few);
    await meter().admit(job);
    expect(codeOf(await meter().admit(request(few)))).toBe("TOO_MANY_JOBS");
    await meter().doubt(job.admission);
    const second = request(few);
    expect(await meter().admit(second)).toMatchObject({ admitted: true });
    await meter().release(second.admission);
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 20_000 });
    await at(noon + 60_000);
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
    expect(await meter().job(job.admission)).toMatchObject({ status: "TIMED_OUT", costMicroUsd: 0, isAssumed: true });
    await meter().bind([{ admission: job.admission, upstreamId }]);
    await seen(job, noon + 70_000, "COMPLETED", 9000);
    expect(await totals()).toEqual({ known: 9000, assumed: 0, reserved: 0 });
    await audit();
  });

  it("in doubt a key stays with its admission", async () => {
    const job = request({ idempotency: { key: "k", fingerprint: "f" } });
    await meter().admit(job);
    await meter().doubt(job.admission);
    const again = { ...job, admission: request().admission };
    expect(codeOf(await meter().admit(again))).toBe("IN_PROGRESS");
    await at(noon + 60_000);
    await totals();
    const { admission } = job;
    expect(await meter().admit(again)).toEqual({ admitted: false, replay: { admission, upstreamId: null } });
    await meter().bind([{ admission, upstreamId }]);
    expect(await meter().admit(again)).toEqual({ admitted: false, replay: { admission, upstreamId } });
  });

  it.each([
    ["would have been told of it", true, 0],
    ["would not", false, 20_000],
  ])("silent, it is assumed by whether we %s", async (_what, hasNotice, assumed) => {
    await meter().admit(request({ hasNotice }));
    await at(noon + 10 * 60_000);
    expect(await totals()).toEqual({ known: 0, assumed, reserved: 0 });
  });
});

describe("attack: a slow upload makes a minute's requests older", () => {
  it("what was counted since its admission stays counted for a whole minute", async () => {
    const plans = plansText({ tested: [{ unit: "requests", limit: 4, per: "minute" }] });
    const limited = { ...claims, plan: "tested", plans };
    const upload = await accepted(limited);
    await at(noon + 50_000);
    for (let time = 0; time < 3; time++) await accepted(limited);
    await at(noon + 55_000);
    const terms = { ...limited, hasCeiling: false };
    const amended = await meter().amend(upload.admission, { terms, reserveMicroUsd: 30_000, inputBytes: 1 });
    expect(amended).toMatchObject({ admitted: true });
    await at(noon + 62_000);
    await accepted(limited);
    expect(codeOf(await meter().admit(request(limited)))).toBe("RATE_LIMITED");
  });
});

describe("attack M7: meters of addresses that only look", () => {
  it("reads make no storage", async () => {
    for (let address = 0; address < 5; address++) {
      const name = `addr:198.51.100.${address}/32`;
      const reads = meterOf(name);
      await reads.usage({ ...claims, plan: "anonymous" });
      await reads.jobs("anon:1", undefined, 0, 10);
      await reads.openJobs("anon:1", "flux", 10);
      await reads.gallery("anon:1", undefined, 10);
      await reads.job("1");
      await reads.settings();
      await reads.release("1");
      await reads.doubt("1");
      await reads.bind([{ admission: "1", upstreamId }]);
      await reads.settle(ending("1"));
      await reads.recount();
      expect(await tablesOf(name)).toEqual([]);
    }
  });

  it("one that worked is empty again after 70 silent days, and begins anew", async () => {
    const job = await accepted();
    await seen(job, noon + 1, "COMPLETED", 9000);
    await at(noon + 2 * 60_000);
    await runDurableObjectAlarm(stubOf(payer));
    const rings = await runInDurableObject(stubOf(payer), (_object, { storage }) => storage.getAlarm());
    expect(rings).toBe(noon + 70 * dayMs);
    await at(noon + 70 * dayMs);
    await runDurableObjectAlarm(stubOf(payer));
    expect(await tablesOf(payer)).toEqual([]);
    await accepted();
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 20_000 });
  });

  const endedAt = noon + 100 * dayMs;
  const grants = [{ unit: "usd", amount: 5_000_000, expiresAt: endedAt }] as const;
  it.each([
    ["a grant", () => meter().configure({ grants })],
    ["a token's revocation", () => meter().revoke("user:ada", noon, { id: "jti", expiresAt: endedAt })],
  ])("%s keeps one until it has ended, and no longer", async (_what, set) => {
    await set();
    await at(noon + 71 * dayMs);
    await runDurableObjectAlarm(stubOf(payer));
    expect(await tablesOf(payer)).toContain("state");
    const rings = await runInDurableObject(stubOf(payer), (_object, { storage }) => storage.getAlarm());
    await at(Number(rings));
    expect(Number(rings)).toBeGreaterThan(endedAt);
    await runDurableObjectAlarm(stubOf(payer));
    expect(await tablesOf(payer)).toEqual([]);
  });

  it.each([
    ["a plan", () => meter().configure({ plan: "pro", grants: [] })],
    ["rules", () => meter().configure({ rules: [], grants: [] })],
    ["a user's revocation", () => meter().revoke("user:ada", noon)],
  ])("%s that the operator set outlives any silence", async (_what, set) => {
    await set();
    for (const later of [71, 142, 300]) {
      await at(noon + later * dayMs);
      await runDurableObjectAlarm(stubOf(payer));
    }
    expect(await tablesOf(payer)).toContain("state");
  });
});

describe("attack: a crowd of one user's requests, for the whole budget of the app", () => {
  it("leases no more than the user's own rules admit", async () => {
    const budget = env.BUDGET.getByName(budgetName);
    await budget.setCeilings({ dayMicroUsd: 50_000_000, monthMicroUsd: null });
    await runInDurableObject(budget, (object) => {
      object.clock = () => noon;
    });
    const rules = [
      { unit: "jobs", limit: 3 },
      { unit: "usd", limit: 1, per: "day" },
    ];
    const asked = { plan: "few", plans: JSON.stringify({ few: rules }), hasCeiling: true, reserveMicroUsd: 240_000 };
    const crowd = await Promise.all(Array.from({ length: 200 }, () => meter().admit(request(asked))));
    expect(crowd.filter(({ admitted }) => admitted)).toHaveLength(3);
    const { consumedMicroUsd, leasedMicroUsd } = (await budget.state()).day;
    expect(consumedMicroUsd + leasedMicroUsd).toBe(720_000);
  });
});

it("attack: thousands of jobs with a webhook whose submit is in doubt leave room for what a later truth corrects", async () => {
  const many = 3_100;
  await runInDurableObject(stubOf(payer), async (object) => {
    for (let at = 0; at < many; at++) {
      const job = request({ webhook: "https://app.example.org/done" });
      await object.admit(job);
      object.doubt(job.admission);
      if (at % 50 === 49) object.clock = () => noon + (at + 1) * 2000;
    }
    object.clock = () => noon + dayMs;
  });
  const job = await accepted();
  await meter().settle(ending(job.admission, { upstreamId, costMicroUsd: null }));
  await meter().settle(ending(job.admission, { upstreamId, costMicroUsd: 5 }));
  expect(await meter().job(job.admission)).toMatchObject({ costMicroUsd: 5, isAssumed: false });
  const rows = await runInDurableObject(stubOf(payer), (_object, { storage }) =>
    storage.sql.exec<{ count: number }>("SELECT COUNT(*) AS count FROM ended").one(),
  );
  expect(rows.count).toBeLessThanOrEqual(3_060);
});

describe("attack M8: a /48 full of addresses", () => {
  const network = "addr:2001:db8:1::/48";
  const addresses = Array.from({ length: 30 }, (_, at) => `addr:2001:db8:1:${at.toString(16)}::/64`);
  const visit = (name: string, change: Partial<AdmitRequest> = {}) =>
    meterOf(name).admit(request({ plan: "anonymous", network, owner: "anon:1", ...change }));

  beforeEach(async () => {
    for (const name of [network, ...addresses]) await clockOf(name, noon);
  });

  it("is named by its addresses", () => {
    expect(networkOf("addr:2001:db8:1:2::/64")).toBe(network);
    expect(networkOf("addr:203.0.113.7/32")).toBeUndefined();
    expect(networkOf("user:2001:db8:1:2::/64")).toBeUndefined();
  });

  it("has ten times an address's limits", async () => {
    const answers = [];
    for (const name of addresses) answers.push(await visit(name));
    expect(answers.filter(({ admitted }) => admitted)).toHaveLength(10);
    expect(codeOf(answers[10] ?? { admitted: true, quota: { policy: "", limit: "" } })).toBe("TOO_MANY_JOBS");
    expect((await meterOf(network).usage({ ...claims, plan: "anonymous" })).totals.reserved).toBe(200_000);
    expect(await tablesOf(addresses[20] ?? "")).toEqual([]);
  });

  it("is not spent by an address that is over its own", async () => {
    const [name = ""] = addresses;
    expect(await visit(name)).toMatchObject({ admitted: true });
    for (let time = 0; time < 20; time++) expect(codeOf(await visit(name))).toBe("TOO_MANY_JOBS");
    const { limits } = await meterOf(network).usage({ ...claims, plan: "anonymous" });
    expect(limits.find(({ name }) => name === "requests-minute")?.used).toBe(1);
  });

  it("is not spent by an address that asks for many jobs at once, of which its own rules admit one", async () => {
    const [name = ""] = addresses;
    const crowd = await Promise.all(Array.from({ length: 30 }, () => visit(name)));
    expect(crowd.filter(({ admitted }) => admitted)).toHaveLength(1);
    const { limits, totals } = await meterOf(network).usage({ ...claims, plan: "anonymous" });
    expect(limits.find(({ name }) => name === "requests-minute")?.used).toBe(1);
    expect(totals.reserved).toBe(20_000);
  });

  it("hears of every end, also where the first telling was lost", async () => {
    const [name = "", other = ""] = addresses;
    const [job, gone] = [newAdmission(noon), newAdmission(noon)];
    await visit(name, { admission: job });
    await visit(other, { admission: gone });
    await meterOf(name).settle(ending(job, { costMicroUsd: 7000 }));
    await meterOf(other).release(gone);
    const ofNetwork = async () => (await meterOf(network).usage(claims)).totals;
    expect(await ofNetwork()).toMatchObject({ reserved: 40_000 });
    for (const address of [name, other]) await runDurableObjectAlarm(stubOf(address));
    expect(await ofNetwork()).toEqual({ known: 7000, assumed: 0, reserved: 0 });
    for (const address of [name, other, network]) await audit(address);
    expect(await runInDurableObject(stubOf(name), (object) => object.audit())).toEqual([]);
  });

  it("counts a job for as long as it runs", async () => {
    const hourMs = 3_600_000;
    const open = addresses.slice(0, 10);
    for (const name of open) {
      const admission = newAdmission(noon);
      expect(await visit(name, { admission, hasNotice: true })).toMatchObject({ admitted: true });
      await meterOf(name).bind([{ admission, upstreamId: name }]);
    }
    const goesOn = async () => ({ status: "IN_PROGRESS", costMicroUsd: null, completedAt: 0 }) as const;
    for (let now = noon; now < noon + 3 * hourMs; now += hourMs / 4) {
      for (const name of [network, ...addresses]) await clockOf(name, now);
      for (const name of open) {
        await runInDurableObject(stubOf(name), (object) => {
          object.ask = goesOn;
        });
        await runDurableObjectAlarm(stubOf(name));
      }
      await runDurableObjectAlarm(stubOf(network));
    }
    expect(codeOf(await visit(addresses[20] ?? ""))).toBe("TOO_MANY_JOBS");
    expect((await meterOf(network).usage(claims)).totals.reserved).toBe(200_000);
    for (const name of [network, ...open]) await audit(name);
  });

  it("counts an openai stream for as long as it lasts", async () => {
    const [minuteMs, times] = [60_000, { operation: "openai", ttlMs: 300_000, retentionMs: 300_000 } as const];
    const open = new Map(addresses.slice(0, 10).map((name) => [name, newAdmission(noon)]));
    for (const [name, admission] of open) await visit(name, { admission, ...times });
    for (let now = noon; now <= noon + 70 * minuteMs; now += 1.5 * minuteMs) {
      for (const name of [network, ...addresses]) await clockOf(name, now);
      for (const [name, admission] of open) {
        const goesOn = {
          status: "IN_PROGRESS",
          costMicroUsd: null,
          askedAt: now,
          seenAt: now,
          completedAt: now,
        } as const;
        await meterOf(name).settle(ending(admission, goesOn));
        await runDurableObjectAlarm(stubOf(name));
      }
      await runDurableObjectAlarm(stubOf(network));
    }
    expect((await meterOf(network).usage(claims)).totals).toEqual({ known: 0, assumed: 0, reserved: 200_000 });
    expect(codeOf(await visit(addresses[20] ?? "", times))).toBe("TOO_MANY_JOBS");
    for (const name of [network, ...open.keys()]) await audit(name);
  });

  it("counts nothing twice at the app's budget, owes no webhook, and is asked nothing", async () => {
    const [name = ""] = addresses;
    await visit(name, { webhook: "https://example.com/done" });
    const ask = vi.fn(async () => "unreachable" as const);
    await runInDurableObject(stubOf(network), (object) => {
      object.ask = ask;
    });
    for (const later of [61_000, 120_000, 2 * 3_600_000]) {
      await clockOf(network, noon + later);
      await runDurableObjectAlarm(stubOf(network));
    }
    expect(ask).not.toHaveBeenCalled();
    const { consumedMicroUsd } = (await env.BUDGET.getByName(budgetName).state()).month;
    expect(consumedMicroUsd).toBe(0);
  });

  it("lets nobody in where it cannot be reached", async () => {
    const [name = ""] = addresses;
    vi.spyOn(Network.prototype, "admit").mockRejectedValue(new Error("away"));
    expect(codeOf(await visit(name))).toBe("METER_UNAVAILABLE");
    expect((await meterOf(name).usage(claims)).totals.reserved).toBe(0);
  });
});

describe("attack M10: a retried job's webhook is lost", () => {
  it("tells of its last end", async () => {
    const first = await accepted({ webhook: "https://example.com/done" });
    expect(await seen(first, noon + 1, "FAILED")).toMatchObject({ wantsNotice: true, admission: first.admission });
    await meter().notify(first.admission, '{"status":"FAILED"}');
    expect(await seen(first, noon + 2, "FAILED")).toMatchObject({ wantsNotice: false });
    await at(noon + 10);
    const retry = await retrying(first);
    const settled = await seen(first, noon + 20, "COMPLETED", 9000);
    expect(settled).toMatchObject({ wantsNotice: true, admission: retry.admission });
    await meter().notify(settled.admission, '{"status":"COMPLETED"}');
    const owed = await runInDurableObject(stubOf(payer), (_object, { storage: { sql } }) =>
      sql.exec<{ admission: string; url: string }>("SELECT admission, url FROM outbox ORDER BY admission").toArray(),
    );
    expect(owed).toHaveLength(2);
    expect(new Set(owed.map(({ url }) => url))).toEqual(new Set(["https://example.com/done"]));
  });
});

describe("attack L2: an end before its beginning", () => {
  it("is put off to its admission", async () => {
    const first = await accepted();
    await seen(first, noon + 1, "FAILED");
    await at(noon + 5000);
    const retry = await retrying(first);
    const at5 = { askedAt: noon + 6000, seenAt: noon + 6000 };
    await meter().settle(ending(first.admission, { upstreamId, ...at5, completedAt: noon + 3000 }));
    expect(await meter().job(retry.admission)).toMatchObject({ admittedAt: noon + 5000, endedAt: noon + 5000 });
  });
});

describe("attack: a charge that was forgiven is corrected downwards", () => {
  const plans = JSON.stringify({ tight: [{ unit: "usd", limit: 0.1, per: "day" }] });
  const asking = (change: Partial<AdmitRequest> = {}) =>
    accepted({ plan: "tight", plans, reserveMicroUsd: 100_000, ...change });
  const refused = async () => codeOf(await meter().admit(request({ plan: "tight", plans, reserveMicroUsd: 100_000 })));

  it("gives the limit once, and not once more for what it takes back", async () => {
    const first = await asking();
    await seen(first, noon + 1, "COMPLETED");
    await meter().reset();
    await seen(first, noon + 2, "COMPLETED", 0);
    const second = await asking();
    await seen(second, noon + 3, "COMPLETED", 100_000);
    expect(await refused()).toBe("QUOTA_EXCEEDED");
    await audit();
  });

  it("stays forgiven where the truth is what was assumed", async () => {
    const first = await asking();
    await seen(first, noon + 1, "COMPLETED");
    await meter().reset();
    await seen(first, noon + 2, "COMPLETED", 100_000);
    await asking();
    expect(await refused()).toBe("QUOTA_EXCEEDED");
  });
});

describe("attack: a text that streams for longer than its time", () => {
  it("is charged for what it said once it ends, and not for what was reserved", async () => {
    const long = { ...text, operation: "openai", ttlMs: 300_000, retentionMs: 300_000 } as const;
    const call = request({ ...long, reserveMicroUsd: 1_000_000 });
    await meter().admit(call);
    await at(noon + 400_000);
    expect(await totals()).toMatchObject({ assumed: 1_000_000, reserved: 0 });
    const said = { upstreamId: null, costMicroUsd: null, assumedMicroUsd: 2000 };
    await meter().settle(ending(call.admission, { ...said, completedAt: noon + 400_000 }));
    expect(await totals()).toMatchObject({ assumed: 2000, reserved: 0 });
    await audit();
  });
});
