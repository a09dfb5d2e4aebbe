// Sums over an endpoint's jobs that are kept in storage and in memory, so that nothing ever counts rows.
import type { JobRow } from "./job.ts";

export interface Sums extends Record<string, SqlStorageValue> {
  position: number;
  payload: number;
  jobs: number;
  bytes: number;
  waiting: number;
  waitingLow: number;
  running: number;
  completed: number;
  failed: number;
  retried: number;
}

export class Totals {
  readonly #storage: DurableObjectStorage;
  #sums: Sums;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sums = this.#read();
  }

  get sums(): Readonly<Sums> {
    return this.#sums;
  }

  /** What lay in storage is gone, and with it what memory knew of it. */
  forget(): void {
    this.#sums = this.#read();
  }

  /** All or nothing: what memory knows of the sums goes back as well. */
  transaction<T>(work: () => T): T {
    const before = { ...this.#sums };
    try {
      return this.#storage.transactionSync(work);
    } catch (error) {
      this.#sums = before;
      throw error;
    }
  }

  add(changes: Partial<Sums>): void {
    const names = Object.keys(changes).filter((name) => changes[name] !== 0);
    if (names.length === 0) return;
    for (const name of names) this.#sums[name] = Number(this.#sums[name]) + Number(changes[name]);
    const values = names.map((name) => this.#sums[name] as SqlStorageValue);
    const columns = names.map((name) => `${name} = ?`).join(", ");
    this.#storage.sql.exec(`UPDATE totals SET ${columns} WHERE id = 1`, ...values);
  }

  /** Counts the job in its state, or no more. */
  count(job: JobRow, by: 1 | -1): void {
    if (job.status === "IN_QUEUE") this.add({ waiting: by, waitingLow: job.lowPriority ? by : 0 });
    if (job.status === "IN_PROGRESS") this.add({ running: by });
  }

  #read(): Sums {
    return this.#storage.sql.exec<Sums>("SELECT * FROM totals WHERE id = 1").one();
  }
}
