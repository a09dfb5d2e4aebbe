// Until when a real worker counts as present, noted so that the object knows it after a sleep.
import { limits } from "../../contract/limits.ts";

export class Presence {
  readonly #sql: SqlStorage;
  #until: number;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#until = sql.exec<{ until: number }>("SELECT until FROM presence WHERE id = 1").one().until;
  }

  get until(): number {
    return this.#until;
  }

  /** To within a ping: workers are heard of far more often than it is worth a write. */
  note(until: number): void {
    if (Math.abs(until - this.#until) < limits.workerPingMs) return;
    this.#until = until;
    this.#sql.exec("UPDATE presence SET until = ? WHERE id = 1", until);
  }
}
