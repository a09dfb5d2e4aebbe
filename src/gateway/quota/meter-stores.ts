// All that a meter keeps, in SQL and in memory, and the transaction that holds the two together.
import { Settings } from "./account-settings.ts";
import { Gallery } from "./gallery.ts";
import { Idempotency } from "./idempotency.ts";
import { Journal } from "./journal.ts";
import { LastClaim } from "./last-claim.ts";
import { Leases } from "./leases.ts";
import { type JobRow, MeteredJobs, type NewJob } from "./metered-jobs.ts";
import { Outbox } from "./outbox.ts";
import { dayOf } from "./periods.ts";
import { type Counter, RequestWindows } from "./request-windows.ts";
import { payersAccount, Spending } from "./spending.ts";

type MoneyChange = Partial<Record<"known" | "assumed" | "reserved", number>>;

function open(sql: SqlStorage) {
  const stores = {
    journal: new Journal(sql),
    windows: new RequestWindows(sql),
    spending: new Spending(sql),
    jobs: new MeteredJobs(sql),
    idempotency: new Idempotency(sql),
    outbox: new Outbox(sql),
    settings: new Settings(sql),
    lastClaim: new LastClaim(sql),
    leases: new Leases(sql),
    gallery: new Gallery(sql),
  };
  for (const job of stores.journal.uncounted()) count(stores, job, stores.windows.named(job.counters));
  return stores;
}

/** What an admission changes beside its own row. */
function count({ windows, spending }: Counts, job: NewJob, counters: readonly Counter[]): void {
  for (const counter of counters) windows.add(counter, job.admittedAt);
  if (job.reserved > 0) spend(spending, job, { reserved: job.reserved });
}

interface Counts {
  readonly windows: RequestWindows;
  readonly spending: Spending;
}
type Paid = Pick<NewJob, "account" | "model" | "kind" | "admittedAt">;

/** On the day of the admission: the payer's, and that of a token that narrows. */
function spend(spending: Spending, { account, model, kind, admittedAt }: Paid, change: MoneyChange): void {
  const entry = { day: dayOf(admittedAt), model, kind };
  spending.add({ ...entry, account: payersAccount }, change);
  if (account !== payersAccount) spending.add({ ...entry, account }, change);
}

export class MeterStores {
  readonly #storage: DurableObjectStorage;
  #open: ReturnType<typeof open>;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#open = open(storage.sql);
  }

  get windows(): RequestWindows {
    return this.#open.windows;
  }
  get spending(): Spending {
    return this.#open.spending;
  }
  get jobs(): MeteredJobs {
    return this.#open.jobs;
  }
  get idempotency(): Idempotency {
    return this.#open.idempotency;
  }
  get outbox(): Outbox {
    return this.#open.outbox;
  }
  get settings(): Settings {
    return this.#open.settings;
  }
  get lastClaim(): LastClaim {
    return this.#open.lastClaim;
  }
  get leases(): Leases {
    return this.#open.leases;
  }

  get gallery(): Gallery {
    return this.#open.gallery;
  }

  /**
   * One statement, and so all or nothing by itself: what it counts, SQL learns later. A transaction costs as much again:
   * it is for a counter that rows cannot name yet, and for what must be written beside the row.
   */
  admit(job: Omit<NewJob, "counters">, counters: readonly Counter[], beside?: () => void): void {
    const work = () => {
      this.#add(job, counters);
      beside?.();
    };
    const named = counters.every(({ id }) => id !== undefined);
    if (named && !beside && !this.#open.journal.isLong) this.#orReread(work);
    else this.transaction(work);
  }

  #add(job: Omit<NewJob, "counters">, counters: readonly Counter[]): void {
    const row = { ...job, counters: counters.map(({ id }) => id).join(" ") };
    this.jobs.add(row, this.#open.journal.nextTurn());
    count(this.#open, row, counters);
  }

  transaction<T>(work: () => T): T {
    return this.#orReread(() =>
      this.#storage.transactionSync(() => {
        const result = work();
        this.#writeCounts();
        return result;
      }),
    );
  }

  /** Where SQL went back, memory reads anew what it knows. */
  #orReread<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.#open = open(this.#storage.sql);
      throw error;
    }
  }

  #writeCounts(): void {
    this.windows.write();
    this.spending.write();
    this.#open.journal.close();
  }

  /** Money of a job. */
  spend(job: Paid, now: number, ...changes: MoneyChange[]): void {
    const sum = (part: keyof MoneyChange) => changes.reduce((total, change) => total + (change[part] ?? 0), 0);
    const change = { known: sum("known"), assumed: sum("assumed"), reserved: sum("reserved") };
    if (Object.values(change).every((amount) => amount === 0)) return;
    spend(this.spending, job, change);
    this.leases.owe(dayOf(job.admittedAt), now);
  }

  freeKey({ owner, idempotencyKey, admission }: JobRow): void {
    if (idempotencyKey !== null) this.idempotency.free(owner, idempotencyKey, admission);
  }

  /** The rules begin anew; what is reserved, and what was spent in truth, stays. */
  reset(now: number): void {
    this.transaction(() => {
      this.#writeCounts();
      this.windows.reset(payersAccount);
      this.spending.reset(now);
    });
  }

  prune(now: number): void {
    this.transaction(() => {
      this.#writeCounts();
      this.windows.prune(now);
      this.idempotency.prune(now);
      this.spending.prune(dayOf(now));
      this.leases.prune(dayOf(now));
    });
  }
}
