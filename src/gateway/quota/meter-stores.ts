// All that a meter keeps, in SQL and in memory, and the transaction that holds the two together.
import { Settings } from "./account-settings.ts";
import { Gallery } from "./gallery.ts";
import { Idempotency } from "./idempotency.ts";
import { Leases } from "./leases.ts";
import { type JobRow, MeteredJobs, type NewJob } from "./metered-jobs.ts";
import { Outbox } from "./outbox.ts";
import { dayOf } from "./periods.ts";
import { RequestWindows } from "./request-windows.ts";
import { payersAccount, Spending } from "./spending.ts";

type MoneyChange = Partial<Record<"known" | "assumed" | "reserved", number>>;

function open(sql: SqlStorage) {
  return {
    windows: new RequestWindows(sql),
    spending: new Spending(sql),
    jobs: new MeteredJobs(sql),
    idempotency: new Idempotency(sql),
    outbox: new Outbox(sql),
    settings: new Settings(sql),
    leases: new Leases(sql),
    gallery: new Gallery(sql),
  };
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
  get leases(): Leases {
    return this.#open.leases;
  }

  get gallery(): Gallery {
    return this.#open.gallery;
  }

  /** All or nothing: what memory knows is read anew where SQL went back. */
  transaction<T>(work: () => T): T {
    try {
      return this.#storage.transactionSync(work);
    } catch (error) {
      this.#open = open(this.#storage.sql);
      throw error;
    }
  }

  /** Money of a job, on the day of its admission: the payer's, and that of a token that narrows. */
  spend(job: Pick<NewJob, "account" | "model" | "kind" | "admittedAt">, now: number, ...changes: MoneyChange[]): void {
    const { account, model, kind, admittedAt } = job;
    const sum = (part: keyof MoneyChange) => changes.reduce((total, change) => total + (change[part] ?? 0), 0);
    const change = { known: sum("known"), assumed: sum("assumed"), reserved: sum("reserved") };
    if (Object.values(change).every((amount) => amount === 0)) return;
    const day = dayOf(admittedAt);
    for (const id of new Set([payersAccount, account])) {
      this.spending.add({ account: id, day, model, kind }, change);
    }
    this.leases.owe(day, now);
  }

  freeKey({ owner, idempotencyKey, admission }: JobRow): void {
    if (idempotencyKey !== null) this.idempotency.free(owner, idempotencyKey, admission);
  }

  /** The rules begin anew; what is reserved, and what was spent in truth, stays. */
  reset(now: number): void {
    this.transaction(() => {
      this.windows.reset(payersAccount);
      this.spending.reset(now);
    });
  }

  prune(now: number): void {
    this.transaction(() => {
      this.windows.prune(now);
      this.idempotency.prune(now);
      this.spending.prune(dayOf(now));
      this.leases.prune(dayOf(now));
    });
  }

  nextDue(): number | undefined {
    const times = [this.jobs.nextDue(), this.outbox.nextDue(), this.leases.nextDue()];
    const known = times.filter((time) => time !== undefined);
    return known.length > 0 ? Math.min(...known) : undefined;
  }
}
