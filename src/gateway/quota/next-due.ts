// When the first row of a table is due, remembered: each call of a meter asks for it, and few calls change it.
export class NextDue {
  readonly #sql: SqlStorage;
  readonly #table: "outbox" | "network_ends" | "debts" | "uploads";
  /** Undefined where there is no row. */
  #at: number | undefined;

  constructor(sql: SqlStorage, table: "outbox" | "network_ends" | "debts" | "uploads", at: number | undefined) {
    this.#sql = sql;
    this.#table = table;
    this.#at = at;
  }

  get at(): number | undefined {
    return this.#at;
  }

  isReached(now: number): boolean {
    return this.#at !== undefined && this.#at <= now;
  }

  added(dueAt: number): void {
    this.#at = Math.min(this.#at ?? dueAt, dueAt);
  }

  /** Anew, after rows were changed or removed. */
  read(): void {
    const query = `SELECT MIN(dueAt) AS at FROM ${this.#table}`;
    this.#at = this.#sql.exec<{ at: number | null }>(query).one().at ?? undefined;
  }

  /** The clock was set back: what waits for a moment by the other clock is due now. */
  hurry(now: number): void {
    if (this.#at === undefined) return;
    this.#sql.exec(`UPDATE ${this.#table} SET dueAt = ?1 WHERE dueAt > ?1`, now);
    this.read();
  }
}
