// 1,000 payers on one budget, with answers lost and meters that die: only settlement above the estimate may overshoot.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Budget, budgetName } from "../../../src/gateway/quota/budget.ts";
import { BudgetSlices } from "../../../src/gateway/quota/budget-slices.ts";
import { Leases } from "../../../src/gateway/quota/leases.ts";
import type { AdmitAnswer } from "../../../src/gateway/quota/metering.ts";
import { dayOf } from "../../../src/gateway/quota/periods.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { codeOf, noon } from "./admissions.ts";

const usd = 1_000_000;
const reserve = 20_000;
const today = dayOf(noon);
const granted: AdmitAnswer = { admitted: true, quota: { policy: "", limit: "" } };

/** As much of a meter as slices need, in memory: a thousand real ones would take a minute to make. */
class Payer {
  leases = new Leases();
  used = 0;
  slices: BudgetSlices;
  readonly counters = { consumed: (day: number) => (day === today ? this.used : 0) };
  readonly #name: string;
  readonly #crowd: Crowd;

  constructor(name: string, crowd: Crowd) {
    this.#name = name;
    this.#crowd = crowd;
    this.slices = new BudgetSlices(name, this, () => crowd.line);
  }

  transaction<T>(work: () => T): T {
    return work();
  }

  async admit(needed = reserve): Promise<string | undefined> {
    const { clock } = this.#crowd;
    const again = () => this.#tryAdmit(needed);
    return codeOf(
      again() ??
        (await this.slices.admit({
          needed,
          mostMicroUsd: () => Number.POSITIVE_INFINITY,
          day: () => dayOf(clock()),
          clock,
          again,
        })),
    );
  }

  #tryAdmit(needed: number): AdmitAnswer | undefined {
    if (!this.leases.covers(today, this.used, needed, this.#crowd.now)) return undefined;
    this.used += needed;
    this.leases.scheduleReport(today, this.#crowd.now);
    return granted;
  }

  settle(reserved: number, cost: number): void {
    this.used += cost - reserved;
    this.leases.scheduleReport(today, this.#crowd.now);
  }

  /** What an eviction leaves where the lease's answer had not been written. */
  forget(): void {
    this.leases = new Leases();
    this.leases.scheduleReport(today, this.#crowd.now);
    this.slices = new BudgetSlices(this.#name, this, () => this.#crowd.line);
  }
}

class Crowd {
  now = noon;
  calls = 0;
  /** How often an answer is lost on its way: 0 to 1. */
  lost = 0;
  /** What the next call waits for on its way there, and on its way back. */
  question: Promise<void> | undefined;
  reply: Promise<void> | undefined;
  readonly clock = () => this.now;
  readonly payers: Payer[];
  readonly #random: () => number;
  readonly #budget: Budget;

  constructor(budget: Budget, size: number, random: () => number) {
    this.#budget = budget;
    this.#random = random;
    budget.clock = this.clock;
    this.payers = Array.from({ length: size }, (_, at) => new Payer(`meter-${at}`, this));
  }

  readonly line = {
    lease: async (...args: Parameters<Budget["lease"]>) => this.#carry(() => this.#budget.lease(...args)),
    report: async (...args: Parameters<Budget["report"]>) => this.#carry(() => this.#budget.report(...args)),
  };

  async #carry<T>(call: () => T): Promise<T> {
    this.calls += 1;
    const before = this.#random() < this.lost;
    if (before && this.#random() < 0.5) throw new Error("the question was lost");
    const [question, reply] = [this.question, this.reply];
    this.question = undefined;
    this.reply = undefined;
    await question;
    const answer = call();
    await reply;
    if (before) throw new Error("the answer was lost");
    return answer;
  }

  get used(): number {
    return this.payers.reduce((sum, { used }) => sum + used, 0);
  }

  pick(): Payer {
    return this.payers[Math.floor(this.#random() * this.payers.length)] as Payer;
  }
}

/** mulberry32: the same run every time. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const withBudget = (work: (budget: Budget) => Promise<void>) =>
  runInDurableObject(env.BUDGET.getByName(budgetName), (budget) => work(budget));

beforeEach(() => void vi.spyOn(console, "error").mockReturnValue());
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("1,000 payers", () => {
  it("at once are promised the whole budget and no more", async () => {
    await withBudget(async (budget) => {
      const ceiling = 30 * usd;
      budget.setCeilings({ dayMicroUsd: ceiling, monthMicroUsd: null });
      const crowd = new Crowd(budget, 1000, seeded(1));
      await Promise.all(crowd.payers.flatMap((payer) => [payer.admit(), payer.admit(), payer.admit()]));
      expect(crowd.used).toBeLessThanOrEqual(ceiling);
      expect(crowd.used).toBeGreaterThan(ceiling * 0.9);
      crowd.now += 60_000;
      for (const payer of crowd.payers) await payer.slices.report(crowd.clock);
      for (const payer of crowd.payers) await payer.admit();
      expect(crowd.used).toBeLessThanOrEqual(ceiling);
      expect(crowd.used).toBeGreaterThan(ceiling - reserve);
    });
  });

  it("are asked for by one question at a time", async () => {
    await withBudget(async (budget) => {
      budget.setCeilings({ dayMicroUsd: 100 * reserve, monthMicroUsd: null });
      const crowd = new Crowd(budget, 1, seeded(1));
      const codes = await Promise.all(Array.from({ length: 200 }, () => crowd.pick().admit()));
      expect(codes.filter((code) => code === undefined)).toHaveLength(100);
      expect(crowd.calls).toBeLessThan(10);
    });
  });

  it.each([
    ["a lease's answer is late", "reply", "lease"],
    ["a report is late", "question", "report"],
  ] as const)("keep what they lease where %s", async (_name, late, first) => {
    await withBudget(async (budget) => {
      budget.setCeilings({ dayMicroUsd: 10_000 * usd, monthMicroUsd: null });
      const crowd = new Crowd(budget, 1, seeded(1));
      const payer = crowd.pick();
      await payer.admit();
      crowd.now += 61_000;
      const gate = Promise.withResolvers<void>();
      crowd[late] = gate.promise;
      const calls = [() => payer.admit(), () => payer.slices.report(crowd.clock)];
      const underWay: Promise<unknown>[] = [];
      for (const call of first === "lease" ? calls : calls.reverse()) {
        underWay.push(call());
        await scheduler.wait(1);
        crowd.now += 11_000;
      }
      gate.resolve();
      await Promise.all(underWay);
      /** As much as the payer may still promise is deducted. */
      const held = 19 * reserve;
      const { consumedMicroUsd, leasedMicroUsd } = budget.state().day;
      expect(payer.leases.covers(today, payer.used, held, crowd.now)).toBe(true);
      expect(consumedMicroUsd + leasedMicroUsd).toBe(payer.used + held);
    });
  });

  it("that cannot report come again, and not at once", async () => {
    await withBudget(async (budget) => {
      const crowd = new Crowd(budget, 1, seeded(1));
      const payer = crowd.pick();
      await payer.admit();
      crowd.now += 61_000;
      crowd.lost = 1;
      await payer.slices.report(crowd.clock);
      expect(payer.leases.nextDue()).toBe(crowd.now + 10_000);
    });
  });

  it("cannot be asked for: nobody is admitted", async () => {
    await withBudget(async (budget) => {
      const crowd = new Crowd(budget, 1, seeded(1));
      crowd.lost = 1;
      expect(await crowd.pick().admit()).toBe("METER_UNAVAILABLE");
      expect(crowd.used).toBe(0);
    });
  });

  it.each([1, 2, 3, 4])("with lost answers, deaths and wrong estimates overshoot by these alone (%s)", async (seed) => {
    await withBudget(async (budget) => {
      const ceiling = 20 * usd;
      budget.setCeilings({ dayMicroUsd: ceiling, monthMicroUsd: null });
      const random = seeded(seed);
      const crowd = new Crowd(budget, 1000, random);
      crowd.lost = 0.2;
      const open: { payer: Payer; reserved: number }[] = [];
      let above = 0;
      for (let step = 0; step < 6000; step++) {
        const payer = crowd.pick();
        const dice = random();
        if (dice < 0.6) {
          const reserved = Math.ceil(random() * 60_000);
          if ((await payer.admit(reserved)) === undefined) open.push({ payer, reserved });
        } else if (dice < 0.9) {
          const job = open.splice(Math.floor(random() * open.length), 1)[0];
          const cost = job ? Math.round(job.reserved * random() * (random() < 0.02 ? 5 : 1)) : 0;
          above += Math.max(0, cost - (job?.reserved ?? 0));
          job?.payer.settle(job.reserved, cost);
        } else if (dice < 0.95) {
          await payer.slices.report(crowd.clock);
        } else if (dice < 0.97) {
          payer.forget();
        } else {
          crowd.now += Math.floor(random() * 20_000);
        }
        expect(crowd.used).toBeLessThanOrEqual(ceiling + above);
      }
      crowd.lost = 0;
      for (let round = 0; round < 3; round++) {
        crowd.now += 61_000;
        for (const payer of crowd.payers) await payer.slices.report(crowd.clock);
      }
      const { consumedMicroUsd, leasedMicroUsd } = budget.state().day;
      expect([consumedMicroUsd, leasedMicroUsd]).toEqual([crowd.used, 0]);
    });
  });
});
