// A meter's one alarm: when it rings, and what it does then. It waits for its questions, so that no more of them are asked at
// once; deliveries, debts, reports and ends for the network go on beside it.
import { OneAlarm } from "../../wire/one-alarm.ts";
import { BesideAlarm } from "./beside-alarm.ts";
import type { BudgetSlices } from "./budget-slices.ts";
import { Deliveries } from "./deliveries.ts";
import type { Endings } from "./endings.ts";
import type { Errands } from "./errands.ts";
import type { MeterStores } from "./meter-stores.ts";
import { dayMs } from "./periods.ts";

/** Questions, debts, and ends for the network, of each under way at once. */
const atOnce = 6;
/** What goes on beside the alarm is mostly done by then. */
const quickMs = 100;
/** Clocks of machines differ by less. */
const toleranceMs = 5_000;
/** Of a payer who is silent for so long nothing is kept but what the operator set. */
const keptMs = 70 * dayMs;

/** The meter whose alarm it is. */
interface RingingMeter {
  readonly stores: MeterStores;
  readonly endings: Endings;
  readonly errands: Errands;
  readonly slices: BudgetSlices;
  readonly clock: () => number;
}

export class MeterAlarm {
  readonly #ctx: DurableObjectState;
  readonly #meter: RingingMeter;
  readonly #alarm: OneAlarm;
  readonly #deliveries: Deliveries;
  readonly #telling: BesideAlarm;
  readonly #paying: BesideAlarm;
  #rings = 0;
  /** By the clock, which may be set back. */
  #lastAt: number;

  constructor(ctx: DurableObjectState, meter: RingingMeter) {
    this.#ctx = ctx;
    this.#meter = meter;
    const { stores, errands, clock } = meter;
    this.#lastAt = stores.activeAt;
    const ended = () => this.#armBeside();
    this.#telling = new BesideAlarm(atOnce, ended);
    this.#paying = new BesideAlarm(atOnce, ended);
    this.#deliveries = new Deliveries({ stores, clock, deliver: (notice) => errands.deliver(notice), ended });
    this.#alarm = new OneAlarm(ctx, "user-meter", () => this.#ring(), this.#armedAt());
  }

  arm(): void {
    const { stores, endings, clock } = this.#meter;
    if (!stores.isBorn) return;
    const now = clock();
    if (now < this.#lastAt - toleranceMs) stores.hurry(now);
    this.#lastAt = now;
    this.#alarm.arm(this.#dueAt(), endings.areUnasked ? now : undefined, this.#emptyAt(now));
    stores.alarmAt = this.#alarm.at ?? null;
  }

  ring(): Promise<void> {
    return this.#alarm.ring();
  }

  #dueAt(): number {
    const { jobs, leases, networkEnds, debts } = this.#meter.stores;
    const ends = this.#telling.free > 0 ? networkEnds.nextDue() : undefined;
    const owed = this.#paying.free > 0 ? debts.nextDue() : undefined;
    const moments = [jobs.nextDue(), this.#deliveries.nextDue(), leases.nextDue(), ends, owed];
    return Math.min(...moments.map((at) => at ?? Number.POSITIVE_INFINITY));
  }

  /** It was armed for all that the rows say, and rings at what the state says at the latest; one that is late is gone. */
  #armedAt(): number | undefined {
    const at = Math.min(this.#dueAt(), this.#meter.stores.alarmAt ?? Number.POSITIVE_INFINITY);
    return Number.isFinite(at) && at > Date.now() ? at : undefined;
  }

  /** When there may be nothing to keep any more: a webhook may have been the last of it. */
  #emptyAt(now: number): number {
    const { stores } = this.#meter;
    const silentAt = stores.activeAt + keptMs;
    if (silentAt > now) return silentAt;
    return stores.isWorthless(now, keptMs) ? now : now + keptMs;
  }

  /** What ends while the alarm rings is armed for at its end: rows that are done by then wake nobody. */
  #armBeside(): void {
    if (this.#rings === 0) this.arm();
  }

  async #ring(): Promise<void> {
    const { stores, clock } = this.#meter;
    const now = clock();
    this.#rings += 1;
    try {
      await this.#work(now);
    } finally {
      this.#rings -= 1;
    }
    if (stores.isWorthless(now, keptMs)) return this.#empty();
    this.arm();
    stores.prune(now);
  }

  async #work(now: number): Promise<void> {
    const { stores, endings, errands, slices, clock } = this.#meter;
    const { jobs, notices, ends, debts } = stores.transaction(() => ({
      jobs: endings.claimDue(now, atOnce),
      notices: this.#deliveries.claim(now),
      ends: stores.networkEnds.claim(now, this.#telling.free),
      debts: stores.debts.claim(now, this.#paying.free),
    }));
    const asked = jobs.map((job) => errands.follow(job));
    const beside = Promise.all([
      ...notices.map((notice) => this.#deliveries.begin(notice)),
      ...debts.map((debt) => this.#paying.begin(errands.pay(debt))),
      ...ends.map((end) => this.#telling.begin(errands.tellNetwork(end))),
      slices.report(clock),
    ]);
    this.#ctx.waitUntil(beside);
    await Promise.all([...asked, Promise.race([beside, scheduler.wait(quickMs)])]);
  }

  /** Gone, as if there had been nobody: the next row makes the tables anew. */
  async #empty(): Promise<void> {
    await this.#ctx.blockConcurrencyWhile(async () => {
      await this.#alarm.stop();
      await this.#ctx.storage.deleteAll();
      this.#meter.stores.reopen();
    });
  }
}
