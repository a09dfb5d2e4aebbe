// The rules as tables: what is admitted, which rule refuses, when to come back, and how the headers say it.
import { describe, expect, it } from "vitest";
import { builtInPlans, rulesOf } from "../../../src/gateway/operator-settings/plans.ts";
import { rulesSchema } from "../../../src/gateway/operator-settings/rules.ts";
import { covers, namesOf, scopeOf } from "../../../src/gateway/quota/applied-rules.ts";
import { decide, type RuleUsage } from "../../../src/gateway/quota/decide.ts";
import { endOf, startOf } from "../../../src/gateway/quota/periods.ts";
import { rateLimitFields } from "../../../src/gateway/quota/rate-limit-fields.ts";
import { SlidingCounter } from "../../../src/gateway/quota/sliding-counter.ts";

const now = Date.UTC(2031, 1, 28, 23, 59, 50);
const never = Number.POSITIVE_INFINITY;

function usage(change: Partial<RuleUsage>): RuleUsage {
  const windowSeconds = 60;
  return {
    name: "rule",
    unit: "requests",
    scope: "in a minute",
    limit: 10,
    used: 0,
    reserved: 0,
    windowSeconds,
    freesTo: () => now + 1500,
    ...change,
  };
}
const requests = (used: number, change: Partial<RuleUsage> = {}) => usage({ name: "r", used, ...change });
const jobs = (used: number, limit = 3) =>
  usage({ name: "j", unit: "jobs", limit, used, freesTo: () => undefined, windowSeconds: undefined });
const money = (used: number, change: Partial<RuleUsage> = {}) =>
  usage({ name: "m", unit: "usd", limit: 1000, used, freesTo: () => now + 10_000, ...change });

describe("a decision", () => {
  it.each([
    ["no rules", [], 100, undefined],
    ["room for one request", [requests(9)], 0, undefined],
    ["no room for a request", [requests(10)], 0, ["r", "RATE_LIMITED", 2]],
    ["a limit that was lowered under what is used", [requests(30)], 0, ["r", "RATE_LIMITED", 2]],
    ["a limit of nothing", [requests(0, { limit: 0 })], 0, ["r", "RATE_LIMITED", undefined]],
    ["room for one job", [jobs(2)], 0, undefined],
    ["no room for a job", [jobs(3)], 0, ["j", "TOO_MANY_JOBS", 1]],
    ["jobs forbidden", [jobs(0, 0)], 0, ["j", "TOO_MANY_JOBS", undefined]],
    ["money to the last", [money(900)], 100, undefined],
    ["money over by the smallest part", [money(901)], 100, ["m", "QUOTA_EXCEEDED", 10]],
    ["a request that costs nothing, with no money left", [money(5000)], 0, undefined],
    ["a request dearer than the limit", [money(0)], 1001, ["m", "QUOTA_EXCEEDED", undefined]],
    ["money that open jobs may give back", [money(950, { reserved: 900 })], 100, ["m", "QUOTA_EXCEEDED", 1]],
    ["money that open jobs cannot give back", [money(950, { reserved: 40 })], 100, ["m", "QUOTA_EXCEEDED", 10]],
    ["money that never comes back", [money(1000, { freesTo: () => never })], 1, ["m", "QUOTA_EXCEEDED", undefined]],
    ["several rules: the longest wait", [requests(10), money(1000), jobs(3)], 1, ["m", "QUOTA_EXCEEDED", 10]],
    ["several rules: what waiting does not help", [money(1000), jobs(0, 0)], 1, ["j", "TOO_MANY_JOBS", undefined]],
  ] as [string, RuleUsage[], number, [string, string, number | undefined] | undefined][])(
    "with %s",
    (_name, usages, reserveMicroUsd, refused) => {
      const verdict = decide(usages, { reserveMicroUsd }, now);
      if (!refused) return expect(verdict).toEqual({ allowed: true });
      const [rule, code, retryAfterSeconds] = refused;
      expect(verdict).toMatchObject({ allowed: false, rule, code, retryAfterSeconds });
    },
  );

  it("says in words what is in the way", () => {
    const detail = (...usages: RuleUsage[]) => decide(usages, { reserveMicroUsd: 20_000 }, now);
    expect(detail(requests(10))).toMatchObject({ detail: "r: more than 10 requests in a minute" });
    expect(detail(money(990_000, { limit: 1_000_000, scope: "of this day" }))).toMatchObject({
      detail: "m: 0.02 USD would exceed the 1 USD of this day, of which 0.99 are used",
    });
  });
});

describe("RateLimit fields", () => {
  it("carry quota, unit, window, what remains and when more comes", () => {
    const fields = rateLimitFields([requests(4), jobs(1), money(400, { windowSeconds: 86_400 })], now);
    expect(fields).toEqual({
      policy: '"r";q=10;w=60, "j";q=3;qu="concurrent-requests", "m";q=1000;qu="micro-usd";w=86400',
      limit: '"r";r=6;t=2, "j";r=2, "m";r=600;t=10',
    });
  });

  it.each([
    ["nothing used", requests(0), '"r";r=10'],
    ["more used than there is", requests(12), '"r";r=0;t=2'],
    ["what never comes back", money(1, { freesTo: () => never }), '"m";r=999'],
    ["more than the format's largest integer", money(0, { limit: 1e15 }), '"m";r=999999999999999'],
  ])("with %s", (_name, one, limit) => expect(rateLimitFields([one], now).limit).toBe(limit));
});

describe("a sliding window", () => {
  it("holds its limit in every window, and frees a place at most a slot late", () => {
    const counter = new SlidingCounter(1000);
    const admitted: number[] = [];
    for (let at = 0; at < 10_000; at += 7) {
      if (counter.countAt(at) < 50) {
        counter.add(at);
        admitted.push(at);
      }
    }
    for (const at of admitted) {
      expect(admitted.filter((other) => other > at - 1000 && other <= at).length).toBeLessThanOrEqual(50);
    }
    const freed = admitted.filter((at, index) => index >= 50 && at - (admitted[index - 50] ?? 0) > 1000 + 20 + 7);
    expect(freed).toEqual([]);
  });

  it("says when so many are left", () => {
    const counter = new SlidingCounter(1000);
    for (const at of [100, 100, 500, 900]) counter.add(at);
    for (const [count, at] of [
      [3, 1120],
      [2, 1120],
      [1, 1520],
      [0, 1920],
    ] as const) {
      expect(counter.fallsTo(count, 900)).toBe(at);
      const copy = SlidingCounter.read(1000, counter.json);
      expect(copy.countAt(at - 1)).toBeGreaterThan(count);
      expect(copy.countAt(at)).toBeLessThanOrEqual(count);
    }
  });

  it("forgets nothing when the clock goes back, and counts what lay ahead from then on", () => {
    const counter = new SlidingCounter(1000);
    counter.add(5000);
    counter.add(4000);
    expect(counter.countAt(3000)).toBe(2);
    expect(counter.countAt(3999)).toBe(2);
    expect(counter.countAt(4020)).toBe(0);
  });

  it("takes a clock that goes back by less than a slot for the same moment", () => {
    const counter = new SlidingCounter(1000);
    counter.add(5000);
    expect(counter.countAt(4985)).toBe(1);
    expect(counter.countAt(5999)).toBe(1);
    expect(counter.countAt(6020)).toBe(0);
  });

  it("fault L3: refuses a window longer, not an hour, after a clock that ran an hour ahead", () => {
    const counter = new SlidingCounter(60_000);
    for (let time = 0; time < 20; time++) counter.add(3_600_000 + time * 1000);
    expect(counter.countAt(30_000)).toBe(20);
    expect(counter.fallsTo(0, 30_000)).toBeLessThanOrEqual(30_000 + 61_200);
    expect(counter.countAt(30_000 + 61_200)).toBe(0);
  });
});

describe("rules", () => {
  const rule = { unit: "requests", limit: 1, per: "day" } as const;

  it.each([
    [undefined, "flux", "image", true],
    [["flux"], "flux", "image", true],
    [["image"], "flux", "image", true],
    [["image-edit"], "flux", "image", false],
    [["sora", "speech"], "flux", "image", false],
    [["video"], "opened-endpoint", undefined, false],
    [["opened-endpoint"], "opened-endpoint", undefined, true],
  ] as const)("for %s cover %s of kind %s: %s", (models, model, kind, covered) => {
    expect(covers(models ? { ...rule, models: [...models] } : rule, model, kind)).toBe(covered);
  });

  it("share a counter where only their limits differ", () => {
    expect(scopeOf({ ...rule, models: ["b", "a", "b"] })).toBe(scopeOf({ ...rule, limit: 9, models: ["a", "b"] }));
    expect(scopeOf(rule)).not.toBe(scopeOf({ ...rule, models: ["a"] }));
  });

  it("have names of their own", () => {
    const named = (models?: string[]) => (models ? { ...rule, models } : rule);
    const names = namesOf(
      [named(), named(["b", "a"]), named(["a", "b", "c", "d"]), named(), { unit: "jobs", limit: 1 }],
      "",
    );
    expect(names).toEqual([
      ...["requests-day", "requests-day-a-b", "requests-day-a-b-2-more", "requests-day-2", "jobs"],
    ]);
    expect(namesOf([named()], "token")).toEqual(["token-requests-day"]);
  });

  it("come of the operator's plan, else the built-in one, else the narrowest", () => {
    expect(rulesOf("free", { free: [rule] })).toEqual([rule]);
    expect(rulesOf("free", {})).toBe(builtInPlans["free"]);
    expect(rulesOf("gone", {})).toBe(builtInPlans["anonymous"]);
    expect(rulesOf("constructor", {})).toBe(builtInPlans["anonymous"]);
  });

  it("of the built-in plans are such as the operator may write", () => {
    for (const rules of Object.values(builtInPlans)) expect(rulesSchema.safeParse(rules).success).toBe(true);
  });
});

describe("the calendar in UTC", () => {
  it.each([
    ["day", now, Date.UTC(2031, 1, 28), Date.UTC(2031, 2, 1)],
    ["month", now, Date.UTC(2031, 1, 1), Date.UTC(2031, 2, 1)],
    ["month", Date.UTC(2031, 11, 31, 23), Date.UTC(2031, 11, 1), Date.UTC(2032, 0, 1)],
    ["day", Date.UTC(2032, 1, 29), Date.UTC(2032, 1, 29), Date.UTC(2032, 2, 1)],
  ] as const)("%s", (period, at, start, end) => {
    expect([startOf(period, at), endOf(period, at)]).toEqual([start, end]);
  });
});
