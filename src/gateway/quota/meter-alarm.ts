// A meter's one alarm: when it rings, and what it does then. It awaits its questions to the upstream, which bounds how
// many run at once. Deliveries, debts, reports and ends for the network's meter run beside it.
import { BesideAlarm, besideRing } from "../../durable/beside-alarm.ts";
import { OneAlarm } from "../../durable/one-alarm.ts";
import { type BudgetSlices, retryReportMs } from "./budget-slices.ts";
import { Deliveries } from "./deliveries.ts";
import type { Errands } from "./errands.ts";
import { clocksDifferMs } from "./job-timing.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { OpenJobs } from "./open-jobs.ts";
import { dayMs } from "./periods.ts";
import type { UploadAdmissions } from "./upload-admissions.ts";

const name = "user-meter";
/** Questions, debts, and ends for the network, of each under way at once. */
const atOnce = 6;
/** R2 deletes as many by one call. */
const filesAtOnce = 1000;
const never = Number.POSITIVE_INFINITY;
/** After this long without a sign of the payer, only the operator's settings are kept. */
const keptMs = 70 * dayMs;

/** The meter whose alarm it is. */
interface RingingMeter {
  readonly stores: MeterStores;
  readonly openJobs: OpenJobs;
  readonly errands: Errands;
  readonly slices: BudgetSlices;
  readonly uploads: UploadAdmissions;
  readonly clock: () => number;
}

export class MeterAlarm {
  readonly #ctx: DurableObjectState;
  readonly #meter: RingingMeter;
  readonly #alarm: OneAlarm;
  readonly #deliveries: Deliveries;
  readonly #telling: BesideAlarm;
  readonly #paying: BesideAlarm;
  readonly #removing: BesideAlarm;
  #rings = 0;
  /** By the clock, which may be set back. */
  #lastAt: number;

  constructor(ctx: DurableObjectState, meter: RingingMeter) {
    this.#ctx = ctx;
    this.#meter = meter;
    const { stores, errands, clock } = meter;
    this.#lastAt = stores.seenAt;
    const ended = () => this.#armBeside();
    this.#telling = new BesideAlarm(name, atOnce, ended);
    this.#paying = new BesideAlarm(name, atOnce, ended);
    this.#removing = new BesideAlarm(name, 1, ended);
    this.#deliveries = new Deliveries({ stores, clock, deliver: (notice) => errands.deliver(notice), ended });
    this.#alarm = new OneAlarm(ctx, name, () => this.#ring(), this.#armedAt());
  }

  arm(): void {
    const { stores, clock } = this.#meter;
    if (!stores.isBorn) return;
    const now = clock();
    if (now < this.#lastAt - clocksDifferMs) stores.hurry(now);
    this.#lastAt = now;
    this.#alarm.arm(this.#dueAt(), this.#emptyAt(now));
    stores.alarmAt = this.#alarm.at ?? null;
  }

  ring(): Promise<void> {
    return this.#alarm.ring();
  }

  /** Infinite where nothing is. Asked at each call, so that it makes no lists. */
  #dueAt(): number {
    const { jobs, networkEnds, debts, uploads } = this.#meter.stores;
    const ends = this.#telling.free > 0 ? networkEnds.nextDue() : undefined;
    const owed = this.#paying.free > 0 ? debts.nextDue() : undefined;
    const files = this.#removing.free > 0 ? uploads.nextDue() : undefined;
    const job = jobs.nextDue() ?? never;
    const delivery = this.#deliveries.nextDue() ?? never;
    const report = this.#reportDueAt() ?? never;
    return Math.min(job, delivery, report, ends ?? never, owed ?? never, files ?? never);
  }

  /** One that is under way needs no ring, unless this object dies of it. */
  #reportDueAt(): number | undefined {
    const { stores, slices, clock } = this.#meter;
    const dueAt = stores.leases.nextDue();
    return dueAt !== undefined && slices.isReporting ? Math.max(dueAt, clock() + retryReportMs) : dueAt;
  }

  /**
   * When the stored alarm rings, as far as the rows and the stored state tell. Undefined if that moment has passed: the
   * alarm may be lost.
   */
  #armedAt(): number | undefined {
    const at = Math.min(this.#dueAt(), this.#meter.stores.alarmAt ?? never);
    return Number.isFinite(at) && at > Date.now() ? at : undefined;
  }

  /**
   * When to check whether the meter can be emptied: when the payer has been silent for `keptMs`, and at once if the
   * last due row is gone by then.
   */
  #emptyAt(now: number): number {
    const { stores } = this.#meter;
    const silentAt = stores.activeAt + keptMs;
    if (silentAt > now) return silentAt;
    return stores.isWorthless(now, keptMs) ? now : now + keptMs;
  }

  /**
   * Work that ends while the alarm rings need not arm it: `#ring` does so at its end, without the rows that are done by
   * then.
   */
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
    const { stores, openJobs, errands, slices, uploads, clock } = this.#meter;
    uploads.endOverdue();
    const { jobs, notices, ends, debts, files } = stores.transaction(() => ({
      jobs: openJobs.claimDue(now, atOnce),
      notices: this.#deliveries.claim(now),
      ends: stores.networkEnds.claim(now, this.#telling.free),
      debts: stores.debts.claim(now, this.#paying.free),
      files: this.#removing.free > 0 ? stores.uploads.claimFiles(now, filesAtOnce) : [],
    }));
    const asked = jobs.map((job) => errands.follow(job));
    const beside = besideRing(this.#ctx, [
      ...notices.map((notice) => this.#deliveries.begin(notice)),
      ...debts.map((debt) => this.#paying.begin(errands.pay(debt))),
      ...ends.map((end) => this.#telling.begin(errands.tellNetwork(end))),
      ...(files.length > 0 ? [this.#removing.begin(errands.removeFiles(files))] : []),
      slices.report(clock).finally(() => this.#armBeside()),
    ]);
    await Promise.all([...asked, beside]);
  }

  /** Deletes all storage, as if the payer had never called. The next row makes the tables again. */
  async #empty(): Promise<void> {
    await this.#ctx.blockConcurrencyWhile(async () => {
      await this.#alarm.stop();
      await this.#ctx.storage.deleteAll();
      this.#meter.stores.reopen();
    });
  }
}
