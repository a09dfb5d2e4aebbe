// The meter's side of the app's budget: what it may still promise of a day, and what it owes a report of.

interface Row extends Record<string, SqlStorageValue> {
  day: number;
  /** What the day's admissions may take in all; null where there is no ceiling. */
  allowance: number | null;
  /** Until when the allowance counts, and when the report is due; 0 where nothing is owed. */
  until: number;
}

/** What changes after the report waits so long for the next. */
const reportAfterMs = 60_000;
/** A day's report may be corrected as long as a job of it may be. */
const keptDays = 9;

export class Leases {
  readonly #sql: SqlStorage;
  readonly #rows = new Map<number, Row>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const row of sql.exec<Row>("SELECT day, allowance, until FROM leases")) this.#rows.set(row.day, row);
  }

  covers(day: number, consumed: number, needed: number, now: number): boolean {
    const row = this.#rows.get(day);
    if (!row || row.until <= now) return false;
    return row.allowance === null || consumed + needed <= row.allowance;
  }

  grant(day: number, allowance: number | null, until: number): void {
    this.#write({ day, allowance, until });
  }

  /** The day's money changed after its last report. */
  owe(day: number, now: number): void {
    const row = this.#rows.get(day);
    if (!row || row.until === 0) this.#write({ day, allowance: 0, until: now + reportAfterMs });
  }

  /** Days that are to be reported; the slices that were leased for them are given back so. */
  due(now: number): number[] {
    return [...this.#rows.values()].filter(({ until }) => until !== 0 && until <= now).map(({ day }) => day);
  }

  reported(day: number): void {
    this.#write({ day, allowance: 0, until: 0 });
  }

  postpone(day: number, until: number): void {
    this.#write({ day, allowance: 0, until });
  }

  nextDue(): number | undefined {
    let next: number | undefined;
    for (const { until } of this.#rows.values()) if (until !== 0 && until < (next ?? Infinity)) next = until;
    return next;
  }

  prune(today: number): void {
    for (const { day, until } of this.#rows.values()) {
      if (day >= today - keptDays || until !== 0) continue;
      this.#rows.delete(day);
      this.#sql.exec("DELETE FROM leases WHERE day = ?", day);
    }
  }

  #write(row: Row): void {
    this.#rows.set(row.day, row);
    const { day, allowance, until } = row;
    this.#sql.exec("INSERT OR REPLACE INTO leases (day, allowance, until) VALUES (?, ?, ?)", day, allowance, until);
  }
}
