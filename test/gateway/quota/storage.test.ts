// A meter's storage is bounded, and an admission costs the same after very many of them.
import { runInDurableObject } from "cloudflare:test";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Admissions, needsLease } from "../../../src/gateway/quota/admissions.ts";
import { Endings } from "../../../src/gateway/quota/endings.ts";
import { MeterStores } from "../../../src/gateway/quota/meter-stores.ts";
import type { Rule } from "../../../src/gateway/rules.ts";
import { ending, noon, request, stubOf } from "./admissions.ts";

/** Every bound is reached long before; a million is a matter of this number and of three minutes. */
const planted = 15_000;
/** They fill a year, so that every window and period is filled and left again. */
const stepMs = (365 * 86_400_000) / planted;
const end = noon + planted * stepMs;
const maxBytes = 5_000_000;
const batch = 200;
const rounds = 25;
const models = ["flux", "qwen", "sora"];
const rules: Rule[] = [
  { unit: "requests", limit: 1e9, per: "second" },
  { unit: "requests", limit: 1e9, per: "minute" },
  { unit: "requests", limit: 1e9, per: "month" },
  { unit: "jobs", limit: 1e9 },
  { unit: "usd", limit: 1e9, per: "day" },
  { unit: "usd", limit: 1e9, per: "month" },
];

const usual = request();

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
  plant(at: number): void {
    const now = Math.floor(noon + at * stepMs);
    this.#admit(at, now);
    if (at % 3 === 1) this.known += 15_000;
    const costMicroUsd = at % 3 === 1 ? 15_000 : null;
    if (at % 3 > 0) this.#endings.settle(ending(`${1e9 + at}`, { completedAt: now, costMicroUsd }), now);
    if (at % batch === 0) this.stores.prune(now);
  }

  #admit(at: number, now: number): void {
    this.stores.leases.grant(Math.floor(now / 86_400_000), null, now + 60_000);
    const job = {
      ...usual,
      ...{ admission: `${1e9 + at}`, model: models[at % models.length] ?? "", ttlMs: 3_600_000 },
      ...{ plan: "tested", plans: { tested: rules } },
      idempotency: at % 10 === 0 ? { key: `${at}`, fingerprint: "f" } : undefined,
      token: at % 20 === 0 ? { id: `token-${Math.floor(at / 50)}`, rules, maxCostMicroUsd: 1e12 } : undefined,
    };
    const answer = this.#admissions.admit(job, now);
    if (answer === needsLease || !answer.admitted) throw new Error("not admitted");
  }

  /** How long so many admissions of one moment take; they are taken back. */
  timed(from: number): number {
    const started = performance.now();
    for (let at = from; at < from + batch; at++) this.#admit(at, end);
    const took = performance.now() - started;
    for (let at = from; at < from + batch; at++) this.#endings.release(`${1e9 + at}`, end);
    return took;
  }
}

/** One object's meter stays in its hands between calls. */
const meters = new Map<string, Planted>();
const within = <T>(name: string, work: (meter: Planted, state: DurableObjectState) => T | Promise<T>) =>
  runInDurableObject(stubOf(name), (_object, state) => {
    const meter = meters.get(name) ?? new Planted(state.storage);
    meters.set(name, meter);
    return work(meter, state);
  });

beforeAll(() => void vi.spyOn(console, "warn").mockReturnValue());
afterAll(() => void vi.restoreAllMocks());

describe("very many admissions", () => {
  it("leave a few megabytes, and the next one costs as much as the first", { timeout: 120_000 }, async () => {
    await within("user:many", async (meter, state) => {
      for (let at = 0; at < planted; at++) {
        meter.plant(at);
        if (at % batch === 0) await scheduler.wait(0);
      }
      expect(state.storage.sql.databaseSize).toBeLessThanOrEqual(maxBytes);
      expect(meter.stores.spending.totals().known).toBe(meter.known);
      expect(meter.stores.jobs.openCount("", () => true)).toBeLessThan(10);
    });
    const took = { first: Number.POSITIVE_INFINITY, next: Number.POSITIVE_INFINITY };
    for (let round = 0; round < rounds; round++) {
      const from = planted + round * batch;
      took.next = Math.min(took.next, await within("user:many", (meter) => meter.timed(from)));
      took.first = Math.min(took.first, await within("user:new", (meter) => meter.timed(from)));
    }
    expect(took.next).toBeLessThanOrEqual(took.first * 1.2);
  });
});
