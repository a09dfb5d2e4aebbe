// A meter's storage is bounded, and an admission costs the same after very many of them.
import { runInDurableObject } from "cloudflare:test";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Admissions } from "../../../src/gateway/quota/admissions.ts";
import { Endings } from "../../../src/gateway/quota/endings.ts";
import { MeterStores } from "../../../src/gateway/quota/meter-stores.ts";
import type { Rule } from "../../../src/gateway/rules.ts";
import { ending, noon, request, stubOf } from "./admissions.ts";

/** Every bound is reached long before; a million is a matter of this number and of three minutes. */
const planted = 40_000;
/** They fill a year, so that every window and period is filled and left again. */
const stepMs = (365 * 86_400_000) / planted;
const maxBytes = 5_000_000;
const batch = 1000;
const rounds = [0, 1, 2, 3, 4];
const models = ["flux", "qwen", "sora"];
const rules: Rule[] = [
  { unit: "requests", limit: 1e9, per: "second" },
  { unit: "requests", limit: 1e9, per: "minute" },
  { unit: "requests", limit: 1e9, per: "month" },
  { unit: "jobs", limit: 1e9 },
  { unit: "usd", limit: 1e9, per: "day" },
  { unit: "usd", limit: 1e9, per: "month" },
];

class Planted {
  readonly stores: MeterStores;
  readonly #endings: Endings;
  readonly #admissions: Admissions;
  known = 0;

  constructor(storage: DurableObjectStorage) {
    this.stores = new MeterStores(storage);
    this.#endings = new Endings(this.stores);
    this.#admissions = new Admissions(this.stores, this.#endings);
  }

  /** Some are settled, some assumed, some expire; some bring a key, some a token that narrows. */
  admit(at: number): void {
    const now = Math.floor(noon + at * stepMs);
    this.stores.leases.grant(Math.floor(now / 86_400_000), null, now + 60_000);
    const job = request({
      ...{ admission: `${1e9 + at}`, model: models[at % models.length] ?? "", ttlMs: 3_600_000 },
      ...{ plan: "tested", plans: { tested: rules } },
      idempotency: at % 10 === 0 ? { key: `${at}`, fingerprint: "f" } : undefined,
      token: at % 20 === 0 ? { id: `token-${Math.floor(at / 50)}`, rules, maxCostMicroUsd: 1e12 } : undefined,
    });
    expect(this.#admissions.admit(job, now)).toHaveProperty("admitted", true);
    if (at % 3 === 1) this.known += 15_000;
    const costMicroUsd = at % 3 === 1 ? 15_000 : null;
    if (at % 3 > 0) this.#endings.settle(ending(job.admission, { completedAt: now, costMicroUsd }), now);
    if (at % batch === 0) this.stores.prune(now);
  }

  timed(from: number): number {
    const started = performance.now();
    for (let at = from; at < from + batch; at++) this.admit(at);
    return performance.now() - started;
  }
}

beforeAll(() => void vi.spyOn(console, "warn").mockReturnValue());
afterAll(() => void vi.restoreAllMocks());

describe("very many admissions", () => {
  it("leave a few megabytes, and the next one costs no more", { timeout: 600_000 }, async () => {
    await runInDurableObject(stubOf("user:many"), async (_object, state) => {
      const meter = new Planted(state.storage);
      meter.timed(0);
      const first = Math.min(...rounds.map((round) => meter.timed((round + 1) * batch)));
      for (let at = (rounds.length + 1) * batch; at < planted; at += batch) {
        meter.timed(at);
        await scheduler.wait(0);
      }
      const next = Math.min(...rounds.map((round) => meter.timed(planted + round * batch)));
      const bytes = state.storage.sql.databaseSize;
      expect(bytes).toBeLessThanOrEqual(maxBytes);
      expect(next / first).toBeLessThanOrEqual(1.2);
      expect(meter.stores.spending.totals().known).toBe(meter.known);
    });
  });
});
