// All that a meter keeps, in SQL and in memory, and the transaction that holds the two together.
//
// An admission writes one row and nothing else, and so does the end of a load-balanced call. The counters in memory
// include both at once; their stored copy (the row of `state`) is written with the next transaction, which also moves ended
// rows from `jobs` to `ended`. An object that wakes in between counts what the copy does not include.
import type { Settings } from "./account-settings.ts";
import type { Counters } from "./counters.ts";
import type { Debts } from "./debts.ts";
import type { Gallery } from "./gallery.ts";
import type { Idempotency } from "./idempotency.ts";
import type { Job } from "./job.ts";
import type { End, Jobs } from "./jobs.ts";
import type { Leases } from "./leases.ts";
import type { PlanClaim } from "./metering.ts";
import { type NetworkEnds, shareEndOf } from "./network-ends.ts";
import type { Outbox } from "./outbox.ts";
import { dayOf, keptDays } from "./periods.ts";
import type { Revocations } from "./revocations.ts";
import type { SpendByDay } from "./spend.ts";
import type { UploadRows } from "./upload-rows.ts";
import { type Awake, claimOf, isOwedToBudget, stateOf, wake } from "./waking.ts";
import { oweWebhook } from "./webhook-debt.ts";

/** The most rows that a waking object has to count. */
const maxUncounted = 500;
/** The most ended jobs that stay in `jobs`. */
const maxUnmoved = 16;

export class MeterStores {
  readonly #storage: DurableObjectStorage;
  readonly #clock: () => number;
  #open: Awake;
  /** When the alarm rings; kept in the state, so that waking sets none. */
  alarmAt: number | null;

  constructor(storage: DurableObjectStorage, clock: () => number) {
    this.#storage = storage;
    this.#clock = clock;
    this.#open = wake(storage.sql);
    this.alarmAt = this.#open.state.alarmAt;
  }

  get isBorn(): boolean {
    return this.#open.tables.isBorn;
  }
  get jobs(): Jobs {
    return this.#open.jobs;
  }
  get counters(): Counters {
    return this.#open.counters;
  }
  get settings(): Settings {
    return this.#open.settings;
  }
  get lastClaim(): PlanClaim | undefined {
    return this.#open.lastClaim;
  }
  get leases(): Leases {
    return this.#open.leases;
  }
  get outbox(): Outbox {
    return this.#open.outbox;
  }
  get networkEnds(): NetworkEnds {
    return this.#open.networkEnds;
  }
  get debts(): Debts {
    return this.#open.debts;
  }
  get revocations(): Revocations {
    return this.#open.revocations;
  }
  get idempotency(): Idempotency {
    return this.#open.idempotency;
  }
  get gallery(): Gallery {
    return this.#open.gallery;
  }
  get uploads(): UploadRows {
    return this.#open.uploads;
  }
  get spend(): SpendByDay {
    return this.#open.spend;
  }
  get activeAt(): number {
    return this.#open.activeAt;
  }
  /** The latest that is known of the clock, as of when this object woke. */
  get seenAt(): number {
    return this.#open.seenAt;
  }

  /** Whether it was admitted before; asked of each, and mostly answered without a look at any row. */
  has(admission: string): boolean {
    return admission <= this.#open.newest && this.jobs.find(admission) !== undefined;
  }

  /** What the next admission is numbered. */
  get nextTurn(): number {
    return this.#open.turn + 1;
  }

  /** Something happened that is worth keeping for a time. */
  touch(now: number): void {
    this.#open.activeAt = Math.max(this.#open.activeAt, now);
  }

  /**
   * Writes the admission's row. One statement is atomic by itself, and a transaction would double its price. A
   * transaction is used for a meter's first row, if something must be written beside the row, if too many rows are not
   * in the stored counters, and if those do not know the row's day.
   */
  admit(job: Omit<Job, "turn">, beside?: () => void): void {
    /** The clock went back to a day that is no longer counted on its own: its money is counted from the rows again. */
    const today = dayOf(job.admittedAt);
    const isBack = today < this.counters.payer.money.from;
    const work = () => {
      if (isBack) this.counters.recount(this.jobs.all(), today - keptDays);
      this.#open.turn += 1;
      const row = { ...job, turn: this.#open.turn } as Job;
      this.jobs.add(row);
      this.counters.admit(row);
      this.touch(row.admittedAt);
      this.#open.lastClaim = claimOf(row);
      if (row.admission > this.#open.newest) this.#open.newest = row.admission;
      if (isOwedToBudget(row)) this.leases.scheduleReport(dayOf(row.admittedAt), row.admittedAt);
      beside?.();
    };
    const isLong = this.#open.turn - this.#open.countedTurn >= maxUncounted;
    if (beside || isLong || isBack) this.transaction(work);
    else if (this.isBorn) this.#orReread(work);
    else this.#orReread(() => this.#storage.transactionSync(work));
  }

  /** What the token of a refused request says is worth keeping too, where anything is kept: an admission's row has it. */
  noteClaim({ plan, planFrom }: PlanClaim): void {
    const last = this.#open.lastClaim;
    if (!this.isBorn || (last?.plan === plan && last.planFrom === planFrom)) return;
    this.#open.lastClaim = { plan, planFrom };
    this.transaction(() => {});
  }

  transaction<T>(work: () => T): T {
    return this.#orReread(() =>
      this.#storage.transactionSync(() => {
        this.#moveEnded();
        const result = work();
        this.#write();
        return result;
      }),
    );
  }

  /** In a transaction of its own: it removes the oldest rows, one of which another work may have in hand. */
  moveEnded(): void {
    if (this.jobs.unmovedCount > 0) this.transaction(() => this.#prune());
  }

  #moveEnded(): void {
    for (const job of this.jobs.moveEnded()) this.spend.addEnded(job);
  }

  #prune(): void {
    for (const gone of this.jobs.prune()) this.counters.keepPruned(gone);
  }

  /** One statement that makes no table, and changes nothing of what the state counts. */
  single(work: () => void): void {
    this.#orReread(work);
  }

  /** If SQL rolled back, the state in memory is read again. */
  #orReread<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.reopen();
      throw error;
    }
  }

  reopen(): void {
    this.#open = wake(this.#storage.sql);
  }

  #write(): void {
    const now = this.#clock();
    this.counters.writeTokens(now);
    const state = stateOf(this.#open, this.alarmAt, now);
    if (!this.isBorn && state.activeAt === 0) return;
    const json = JSON.stringify(state);
    if (json === this.#open.json) return;
    this.#open.tables.bear();
    this.#storage.sql.exec("INSERT OR REPLACE INTO state (id, json) VALUES (1, ?)", json);
    this.#open.json = json;
    this.#open.countedTurn = this.#open.turn;
  }

  /** Changes what a row counts for that stays: `admit` adds one, `remove` takes one back, `endAlone` ends one in its place. */
  change(job: Job, apply: () => void): void {
    this.counters.change(job, () => this.spend.follow(job, this.#clock(), apply));
  }

  /** Also the truth about an end that was assumed. */
  end(job: Job, end: End, now: number): void {
    const owed = isOwedToBudget(job);
    this.change(job, () => (job.endedAt === null ? this.jobs.end(job, end) : this.jobs.correct(job, end)));
    if (owed || isOwedToBudget(job)) this.leases.scheduleReport(dayOf(job.admittedAt), now);
    this.#tellNetwork(job, end, now);
    if (job.noticed === 0) oweWebhook(this, job, now);
    this.#prune();
  }

  /** Its end was assumed. No sum by day counts a share, and no budget. */
  reviveShare(job: Job): void {
    this.counters.change(job, () => this.jobs.revive(job));
  }

  /** The end of an open job that changes its row alone: one statement, as an admission is. */
  endAlone(job: Job, end: End, now: number): void {
    if (this.jobs.unmovedCount < maxUnmoved) this.#endInPlace(job, end, now);
    else this.transaction(() => this.end(job, end, now));
  }

  #endInPlace(job: Job, end: End, now: number): void {
    const owed = isOwedToBudget(job);
    this.#orReread(() => this.counters.change(job, () => this.jobs.endInPlace(job, end)));
    if (owed || isOwedToBudget(job)) this.leases.scheduleReport(dayOf(job.admittedAt), now);
  }

  /** A large body was read: what it was admitted at was the least that its model can cost. */
  amend(job: Job, change: Partial<Job>, now: number): void {
    this.change(job, () => this.jobs.update(job, change));
    if (isOwedToBudget(job)) this.leases.scheduleReport(dayOf(job.admittedAt), now);
  }

  /** The upstream never had it. */
  remove(job: Job, now: number): void {
    this.counters.takeBack(job);
    this.jobs.remove(job);
    this.spend.takeBack(job, now);
    if (isOwedToBudget(job)) this.leases.scheduleReport(dayOf(job.admittedAt), now);
    this.#tellNetwork(job, null, now);
    const { owner, idempotencyKey, admission, webhook } = job;
    if (webhook !== null) this.outbox.forgetInput(admission);
    if (idempotencyKey !== null) this.idempotency.free(owner, idempotencyKey, admission);
  }

  #tellNetwork({ admission, network }: Job, end: End | null, now: number): void {
    if (network !== null) this.networkEnds.add({ admission, network, end: end && shareEndOf(end) }, now);
  }

  /** By the rows; answers which counters were something else. */
  recount(): readonly string[] {
    if (!this.isBorn) return [];
    return this.transaction(() => [...this.counters.recount(this.jobs.all()), ...this.uploads.counts.recount()]);
  }

  reset(now: number): void {
    this.transaction(() => {
      this.counters.payer.reset(now);
      this.uploads.counts.reset();
    });
  }

  /** The clock was set back: what waits for a moment by the other clock is due now, and put off anew. */
  hurry(now: number): void {
    if (!this.isBorn) return;
    this.transaction(() => {
      this.#open.activeAt = Math.min(this.#open.activeAt, now);
      const waiting = [this.jobs, this.outbox, this.debts, this.networkEnds, this.uploads];
      for (const store of waiting) store.hurry(now);
    });
  }

  prune(now: number): void {
    this.transaction(() => {
      this.counters.prune(now);
      this.idempotency.prune(now);
      this.gallery.prune(now);
      this.leases.prune(dayOf(now));
      this.uploads.counts.prune(now);
      this.spend.prune(now);
    });
  }

  /** Nothing is due any more, and the payer has been silent for `keptMs`. */
  isWorthless(now: number, keptMs: number): boolean {
    const waiting = [this.leases, this.outbox, this.networkEnds, this.debts, this.uploads];
    const owed = waiting.some((due) => due.nextDue() !== undefined);
    if (owed || this.jobs.openCount > 0 || this.activeAt + keptMs > now) return false;
    return this.settings.hasNoOverrides(now) && this.revocations.areOver(now);
  }
}
