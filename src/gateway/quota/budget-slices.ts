// How a meter leases its slice of the app's budget. One call of BUDGET at a time serves all admissions that wait.

import { answersWithinMs, type Remote } from "../../durable/remote.ts";
import { inTime } from "../../isolate/in-time.ts";
import type { Budget, LeaseAnswer } from "./budget.ts";
import type { Counters } from "./counters.ts";
import type { Leases } from "./leases.ts";
import type { AdmitAnswer } from "./metering.ts";

export const retryReportMs = 10_000;
/** Each answer of BUDGET admits or refuses at least one waiting admission, so this bounds nothing in practice. */
const maxRounds = 1000;
/** A refusal is repeated this long without asking BUDGET again. */
const refusedMs = 2000;

/** What slices need of a meter; read at each use, since a failed transaction reads its stores anew. */
export interface SlicedMeter {
  readonly leases: Leases;
  readonly counters: Pick<Counters, "consumed">;
  transaction<T>(work: () => T): T;
}

type BudgetCalls = Pick<Remote<Budget>, "lease" | "report">;

export interface Wanted {
  readonly needed: number;
  /** No slice is larger for the sake of others that wait: what is leased is nobody else's for a while. */
  readonly mostMicroUsd: () => number;
  /** The day that it counts on: today's, or that of the admission that is amended. */
  readonly day: () => number;
  readonly clock: () => number;
  readonly again: () => AdmitAnswer | undefined;
}

interface Refusal {
  readonly needed: number;
  readonly day: number;
  readonly until: number;
  readonly answer: Extract<LeaseAnswer, { granted: false }>;
}

export class BudgetSlices {
  readonly #name: string;
  readonly #meter: SlicedMeter;
  readonly #budget: () => BudgetCalls;
  readonly #withinMs: number;
  #underWay: Promise<LeaseAnswer | undefined> | undefined;
  #reporting: Promise<void> | undefined;
  #reports = 0;
  #waiting = 0;
  #refused: Refusal | undefined;

  constructor(name: string, meter: SlicedMeter, budget: () => BudgetCalls, withinMs = answersWithinMs.asked) {
    this.#withinMs = withinMs;
    this.#name = name;
    this.#meter = meter;
    this.#budget = budget;
  }

  /**
   * Asks for slices until `again()` has an answer for this admission. While it returns undefined, another slice is
   * needed.
   */
  async admit({ needed, mostMicroUsd, day, clock, again }: Wanted): Promise<AdmitAnswer> {
    this.#waiting += needed;
    try {
      for (let round = 0; round < maxRounds; round++) {
        const refused = this.#remembered(needed, day(), clock());
        if (refused) return describeRefusal(refused);
        const own = this.#underWay === undefined;
        this.#underWay ??= this.#lease(needed, mostMicroUsd, day, clock).finally(() => {
          this.#underWay = undefined;
        });
        const lease = await this.#underWay;
        if (!lease) return unreachable;
        const answer = again();
        if (answer) return answer;
        if (own && !lease.granted) return describeRefusal(lease);
      }
      return unreachable;
    } finally {
      this.#waiting -= needed;
    }
  }

  /** Undefined where the budget cannot be asked: then nothing is admitted. */
  async #lease(
    neededMicroUsd: number,
    mostMicroUsd: () => number,
    dayNow: () => number,
    clock: () => number,
  ): Promise<LeaseAnswer | undefined> {
    await this.#reporting;
    const day = dayNow();
    const consumedMicroUsd = this.#meter.counters.consumed(day);
    const wantedMicroUsd = Math.max(neededMicroUsd, Math.min(this.#waiting, mostMicroUsd()));
    const request = { meter: this.#name, day, consumedMicroUsd, neededMicroUsd, wantedMicroUsd };
    /**
     * BUDGET forgets the old slice when it is asked for a new one, so nothing may be admitted on the old one meanwhile.
     */
    this.#meter.transaction(() => this.#meter.leases.postpone(day, clock() + retryReportMs));
    try {
      const answer = await inTime(this.#withinMs, this.#budget().lease(request));
      if (answer.granted) this.#hold(day, answer.allowanceMicroUsd, clock() + answer.leaseMs);
      else this.#refused = { needed: neededMicroUsd, day, until: clock() + refusedMs, answer };
      return answer;
    } catch {
      console.error(JSON.stringify({ binding: "BUDGET", problem: "cannot be reached" }));
      return undefined;
    }
  }

  #hold(day: number, allowance: number | null, until: number): void {
    this.#meter.transaction(() => this.#meter.leases.grant(day, allowance, until));
  }

  #remembered(needed: number, day: number, now: number): Refusal["answer"] | undefined {
    const refused = this.#refused;
    if (!refused || needed < refused.needed || refused.day !== day) return undefined;
    /** If the clock was set back, the refusal does not last longer. */
    return now < refused.until && refused.until <= now + refusedMs ? refused.answer : undefined;
  }

  /** While a report runs, the alarm need not ring for the next one. */
  get isReporting(): boolean {
    return this.#reports > 0;
  }

  /**
   * Returns what was leased and not used, and reports what was spent. It never runs beside `#lease`, whose new slice it
   * would give back.
   */
  async report(clock: () => number): Promise<void> {
    this.#reports++;
    try {
      while (this.#underWay) await this.#underWay;
      this.#reporting ??= this.#report(clock).finally(() => {
        this.#reporting = undefined;
      });
      await this.#reporting;
    } finally {
      this.#reports--;
    }
  }

  async #report(clock: () => number): Promise<void> {
    const days = this.#owed(clock());
    if (days.length === 0) return;
    /** A report that fails is made again, and not at once. */
    this.#meter.transaction(() => {
      for (const { day } of days) this.#meter.leases.postpone(day, clock() + retryReportMs);
    });
    try {
      await inTime(this.#withinMs, this.#budget().report(this.#name, days));
    } catch {
      return;
    }
    this.#meter.transaction(() => {
      for (const { day, consumedMicroUsd } of days) {
        if (this.#meter.counters.consumed(day) === consumedMicroUsd) this.#meter.leases.reported(day);
      }
    });
  }

  #owed(now: number): { day: number; consumedMicroUsd: number }[] {
    const { leases, counters } = this.#meter;
    return leases.due(now).map((day) => ({ day, consumedMicroUsd: counters.consumed(day) }));
  }
}

const unreachable: AdmitAnswer = {
  admitted: false,
  code: "METER_UNAVAILABLE",
  detail: "The app's budget cannot be asked.",
  retryAfterSeconds: 1,
};

function describeRefusal({ period, retryAfterSeconds }: Refusal["answer"]): AdmitAnswer {
  const detail = `app-usd-${period}: what the app may spend this ${period} is spent or promised`;
  return { admitted: false, code: "QUOTA_EXCEEDED", detail, retryAfterSeconds };
}
