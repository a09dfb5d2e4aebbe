// Rules at the meter: plans, tokens that narrow, grants, resets, midnight, the sliding minute.
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { plansText } from "../../../src/gateway/operator-settings/plans.ts";
import type { Rule } from "../../../src/gateway/operator-settings/rules.ts";
import type { AdmitRequest } from "../../../src/gateway/quota/metering.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { codeOf, ending, meterOf, noon, request, stubOf } from "./admissions.ts";

const hourMs = 3_600_000;
const meter = () => meterOf("user:ada");
const at = (now: number) =>
  runInDurableObject(stubOf("user:ada"), (object) => {
    object.clock = () => now;
  });
const planned = (...rules: Rule[]) => ({
  ...({ plan: "tested", planFrom: "token" } as const),
  plans: plansText({ tested: rules }),
});

async function admitted(change: Partial<AdmitRequest>): Promise<string | boolean> {
  const answer = await meter().admit(request(change));
  return codeOf(answer) ?? answer.admitted;
}

beforeEach(async () => {
  vi.spyOn(console, "warn").mockReturnValue();
  await at(noon);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("a plan", () => {
  it("counts for all models, a kind, or a model", async () => {
    const plan = planned({ unit: "requests", limit: 1, per: "day", models: ["video", "flux"] });
    expect(await admitted(plan)).toBe(true);
    expect(await admitted({ ...plan, model: "sora", kind: "video" })).toBe("RATE_LIMITED");
    expect(await admitted({ ...plan, model: "qwen", kind: "image" })).toBe(true);
  });

  it("gives way to the operator's plan, and that to rules of the user's own", async () => {
    const plan = planned({ unit: "requests", limit: 0, per: "day" });
    expect(await admitted(plan)).toBe("RATE_LIMITED");
    await meter().configure({ plan: "unlimited", grants: [] });
    expect(await admitted(plan)).toBe(true);
    await meter().configure({ plan: "unlimited", rules: [{ unit: "jobs", limit: 1 }], grants: [] });
    expect(await admitted(plan)).toBe("TOO_MANY_JOBS");
  });

  it("says what is left after the request", async () => {
    const plan = planned({ unit: "requests", limit: 3, per: "minute" }, { unit: "usd", limit: 1, per: "day" });
    expect(await meter().admit(request(plan))).toEqual({
      admitted: true,
      quota: {
        policy: '"requests-minute";q=3;w=60, "usd-day";q=1000000;qu="micro-usd";w=86400',
        limit: '"requests-minute";r=2;t=62, "usd-day";r=980000;t=43200',
      },
    });
  });

  it("of a token says when its first request comes back, too", async () => {
    const token = {
      id: "t-1",
      rules: [{ unit: "requests", limit: 5, per: "minute" }],
    } as const;
    const limits = [];
    for (let count = 0; count < 2; count++) {
      const answer = await meter().admit(request({ token }));
      limits.push("quota" in answer && answer.quota.limit);
    }
    expect(limits).toEqual(['"token-requests-minute";r=4;t=62', '"token-requests-minute";r=3;t=62']);
  });

  it("with two rules of one window counts a request once in each", async () => {
    const rule = { unit: "requests", per: "day" } as const;
    const plan = planned({ ...rule, limit: 2 }, { ...rule, limit: 3 });
    expect(await admitted(plan)).toBe(true);
    expect(await admitted(plan)).toBe(true);
    expect(await admitted(plan)).toBe("RATE_LIMITED");
  });

  it("slides by the minute", async () => {
    const plan = planned({ unit: "requests", limit: 2, per: "minute" });
    expect(await admitted(plan)).toBe(true);
    await at(noon + 30_000);
    expect(await admitted(plan)).toBe(true);
    await at(noon + 59_999);
    expect(await admitted(plan)).toBe("RATE_LIMITED");
    await at(noon + 61_200);
    expect(await admitted(plan)).toBe(true);
    expect(await admitted(plan)).toBe("RATE_LIMITED");
  });
});

describe("money", () => {
  const plan = planned({ unit: "usd", limit: 0.05, per: "day" });

  it("belongs to the day of the admission, though the job ends after midnight", async () => {
    await at(noon + 11.9 * hourMs);
    const job = request(plan);
    await meter().admit(job);
    await at(noon + 12.1 * hourMs);
    await meter().settle(ending(job.admission, { costMicroUsd: 5_000_000 }));
    expect(await admitted(plan)).toBe(true);
    await at(noon + 11.95 * hourMs);
    expect(await admitted(plan)).toBe("QUOTA_EXCEEDED");
  });

  it("above the estimate is seen by the next admission, and what is not used comes back", async () => {
    const [dear, cheap] = [request(plan), request(plan)];
    await meter().admit(dear);
    await meter().admit(cheap);
    expect(await admitted(plan)).toBe("QUOTA_EXCEEDED");
    await meter().settle(ending(cheap.admission, { costMicroUsd: 1000 }));
    expect(await admitted({ ...plan, reserveMicroUsd: 29_000 })).toBe(true);
    await meter().settle(ending(dear.admission, { costMicroUsd: 20_000_000 }));
    expect(await admitted({ ...plan, reserveMicroUsd: 1 })).toBe("QUOTA_EXCEEDED");
  });

  it("is granted on top until the grant expires", async () => {
    await meter().configure({ grants: [{ unit: "usd", amount: 20_000, expiresAt: noon + 1000 }] });
    const asked = { ...plan, reserveMicroUsd: 60_000 };
    expect(await admitted(asked)).toBe(true);
    await at(noon + 1000);
    expect(await admitted({ ...plan, reserveMicroUsd: 1 })).toBe("QUOTA_EXCEEDED");
  });

  it("is forgiven by a reset, but neither what is reserved nor what was spent in truth", async () => {
    const [settled, open] = [request(plan), request(plan)];
    await meter().admit(settled);
    await meter().settle(ending(settled.admission, { costMicroUsd: 30_000 }));
    await meter().admit(open);
    await meter().reset();
    const { totals, limits } = await meter().usage({ ...plan, token: undefined });
    expect(totals).toEqual({ known: 30_000, assumed: 0, reserved: 20_000 });
    expect(limits).toMatchObject([{ used: 20_000, reserved: 20_000 }]);
    await meter().settle(ending(open.admission, { costMicroUsd: 10_000 }));
    expect((await meter().usage({ ...plan, token: undefined })).limits).toMatchObject([{ used: 10_000, reserved: 0 }]);
  });
});

describe("a token that narrows", () => {
  const token = (id: string, change = {}) => ({ token: { id, rules: [], ...change } });

  it("is counted by itself, beside its user's plan", async () => {
    const rules: Rule[] = [{ unit: "requests", limit: 1, per: "day" }];
    const plan = planned({ unit: "requests", limit: 3, per: "day" });
    expect(await admitted({ ...plan, ...token("a", { rules }) })).toBe(true);
    expect(await admitted({ ...plan, ...token("a", { rules }) })).toBe("RATE_LIMITED");
    expect(await admitted({ ...plan, ...token("b", { rules }) })).toBe(true);
    expect(await admitted(plan)).toBe(true);
    expect(await admitted({ ...plan, ...token("c", { rules }) })).toBe("RATE_LIMITED");
  });

  it("spends no more in all than its ceiling, over midnight too", async () => {
    const asked = token("a", { maxCostMicroUsd: 30_000 });
    const job = request(asked);
    await meter().admit(job);
    await meter().settle(ending(job.admission));
    await at(noon + 13 * hourMs);
    expect(await admitted({ ...asked, reserveMicroUsd: 15_000 })).toBe(true);
    expect(await admitted({ ...asked, reserveMicroUsd: 1 })).toBe("QUOTA_EXCEEDED");
    expect(await admitted(token("b", { maxCostMicroUsd: 30_000 }))).toBe(true);
  });

  it("has its own concurrent jobs", async () => {
    const rules: Rule[] = [{ unit: "jobs", limit: 1 }];
    const job = request(token("a", { rules }));
    await meter().admit(job);
    expect(await admitted(token("a", { rules }))).toBe("TOO_MANY_JOBS");
    expect(await admitted(token("b", { rules }))).toBe(true);
    await meter().settle(ending(job.admission));
    expect(await admitted(token("a", { rules }))).toBe(true);
  });

  it("takes places of its user's plan", async () => {
    const plan = planned({ unit: "jobs", limit: 2 });
    const rules: Rule[] = [{ unit: "jobs", limit: 2 }];
    const job = request({ ...plan, ...token("a", { rules }) });
    await meter().admit(job);
    expect(await admitted({ ...plan, ...token("b", { rules }) })).toBe(true);
    expect(await admitted({ ...plan, ...token("c", { rules }) })).toBe("TOO_MANY_JOBS");
    expect(await admitted(plan)).toBe("TOO_MANY_JOBS");
    await meter().settle(ending(job.admission));
    expect(await admitted(plan)).toBe(true);
  });
});
