// A meter's storage is bounded, and an admission costs the same after very many of them.
import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { plansText } from "../../../src/gateway/operator-settings/plans.ts";
import type { Rule } from "../../../src/gateway/operator-settings/rules.ts";
import { Admissions } from "../../../src/gateway/quota/admissions.ts";
import { Bindings } from "../../../src/gateway/quota/bindings.ts";
import { Endings } from "../../../src/gateway/quota/endings.ts";
import { MeterStores } from "../../../src/gateway/quota/meter-stores.ts";
import { OpenJobs } from "../../../src/gateway/quota/open-jobs.ts";
import { amount } from "../../support/amount.ts";
import { ending, noon, request, stubOf } from "./admissions.ts";

/** Every bound is reached long before a tenth of it. What time says is in the bench, beside a million. */
const planted = amount(100_000, 10_000);
/** They fill a year, so that every window and period is filled and left again. */
const stepMs = (365 * 86_400_000) / planted;
const end = noon + planted * stepMs;
const maxBytes = 5_000_000;
const batch = 200;
const countedBatch = 500;
const rounds = 4;
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

/** How many rows the statements read and write, which no other program on the machine changes. */
class CountedStorage {
  readonly storage: DurableObjectStorage;
  #cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] | undefined;

  constructor(storage: DurableObjectStorage) {
    const exec: SqlStorage["exec"] = (query, ...bindings) => {
      const cursor = storage.sql.exec(query, ...bindings);
      this.#cursors?.push(cursor);
      return cursor as never;
    };
    const transactionSync = <T>(work: () => T) => storage.transactionSync(work);
    this.storage = { sql: { exec }, transactionSync } as unknown as DurableObjectStorage;
  }

  count(work: () => void): number {
    this.#cursors = [];
    work();
    const rows = this.#cursors.reduce((sum, { rowsRead, rowsWritten }) => sum + rowsRead + rowsWritten, 0);
    this.#cursors = undefined;
    return rows;
  }
}

class Planted {
  readonly stores: MeterStores;
  readonly #counted: CountedStorage;
  readonly #endings: Endings;
  readonly #openJobs: OpenJobs;
  readonly #admissions: Admissions;
  #now = noon;
  known = 0;

  constructor(storage: DurableObjectStorage) {
    this.#counted = new CountedStorage(storage);
    this.stores = new MeterStores(this.#counted.storage, () => this.#now);
    this.#endings = new Endings(this.stores, new Bindings(this.stores));
    this.#openJobs = new OpenJobs(this.stores);
    this.#admissions = new Admissions(this.stores);
  }

  /** Some are settled, some assumed, some expire; some bring a key, some a token that narrows. */
  plant(at: number): void {
    const now = Math.floor(noon + at * stepMs);
    this.#admit(at, now);
    if (at % 3 === 1) this.known += 15_000;
    const costMicroUsd = at % 3 === 1 ? 15_000 : null;
    if (at % 3 > 0) this.#endings.settle(ending(`${1e9 + at}`, { completedAt: now, costMicroUsd }), now);
    if (at % batch === 0) this.#rest(now);
  }

  /** What the alarm does beside its calls. */
  #rest(now: number): void {
    for (const day of this.stores.leases.due(now)) this.stores.leases.reported(day);
    this.stores.prune(now);
  }

  #admit(at: number, now: number): void {
    this.#now = now;
    this.#openJobs.endOverdue(now);
    const job = {
      ...usual,
      admission: `${1e9 + at}`,
      model: models[at % models.length] ?? "",
      ttlMs: 3_600_000,
      plan: "tested",
      plans: plansText({ tested: rules }),
      idempotency: at % 10 === 0 ? { key: `${at}`, fingerprint: "f" } : undefined,
      token: at % 20 === 0 ? { id: `token-${Math.floor(at / 50)}`, rules, maxCostMicroUsd: 1e12 } : undefined,
    };
    const answer = this.#admissions.admit(job, now);
    if (typeof answer === "symbol" || !answer.admitted) throw new Error("not admitted");
  }

  /** How many rows so many admissions of one moment cost; they are taken back. */
  costOf(from: number): number {
    const rows = this.#counted.count(() => {
      for (let at = from; at < from + countedBatch; at++) this.#admit(at, end);
    });
    for (let at = from; at < from + countedBatch; at++) this.#endings.release(`${1e9 + at}`, end);
    return rows;
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

beforeEach(() => void vi.spyOn(console, "warn").mockReturnValue());

describe("very many admissions", () => {
  it("leave a few megabytes, and the next one costs as much as the first", async () => {
    await within("user:many", async (meter, state) => {
      for (let at = 0; at < planted; at++) {
        meter.plant(at);
        if (at % batch === 0) await scheduler.wait(0);
      }
      expect(state.storage.sql.databaseSize).toBeLessThanOrEqual(maxBytes);
      expect(meter.stores.counters.payer.money.amounts("ever", 0).known).toBe(meter.known);
      expect(meter.stores.counters.recount(meter.stores.jobs.all())).toEqual([]);
      expect(meter.stores.counters.places("", () => true)).toBeLessThan(10);
    });
    const costs: { first: number[]; next: number[] } = { first: [], next: [] };
    for (let round = 0; round < rounds; round++) {
      const from = planted + round * countedBatch;
      costs.next.push(await within("user:many", (meter) => meter.costOf(from)));
      costs.first.push(await within("user:new", (meter) => meter.costOf(from)));
    }
    const [first, next] = [Math.min(...costs.first), Math.min(...costs.next)];
    expect(first).toBeGreaterThan(countedBatch);
    expect(next).toBeLessThanOrEqual(first * 1.2);
  });
});
