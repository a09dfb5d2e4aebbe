// What the meter of an address's /48 must still hear of this address's jobs: each end stands in a row until it was told.
import type { Tables } from "./tables.ts";

/** How an address's job ended, as its network's meter counts it. */
export interface ShareEnd {
  readonly charged: number;
  readonly assumed: 0 | 1;
  readonly endedAt: number;
}

interface Row extends Record<string, SqlStorageValue> {
  admission: string;
  network: string;
  json: string;
  dueAt: number;
}

export interface OwedEnd {
  readonly admission: string;
  readonly network: string;
  /** Null where the upstream never had the job. */
  readonly end: ShareEnd | null;
}

const retryMs = 10_000;

export class NetworkEnds {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;
  /** Nothing is due before. */
  #dueAt: number | undefined;

  constructor(sql: SqlStorage, tables: Tables, dueAt: number | undefined) {
    this.#sql = sql;
    this.#tables = tables;
    this.#dueAt = dueAt;
  }

  /** A later end of the same admission goes before an earlier one. */
  owe({ admission, network, end }: OwedEnd, now: number): void {
    this.#tables.need("network_ends");
    const add = "INSERT OR REPLACE INTO network_ends (admission, network, json, dueAt) VALUES (?, ?, ?, ?)";
    this.#sql.exec(add, admission, network, JSON.stringify(end), now);
    this.#dueAt = Math.min(this.#dueAt ?? now, now);
  }

  /** Takes what is due; where it cannot be told now, it is due again. */
  claim(now: number, count: number): OwedEnd[] {
    if (this.#dueAt === undefined || now < this.#dueAt) return [];
    const query = "SELECT * FROM network_ends WHERE dueAt <= ? ORDER BY dueAt LIMIT ?";
    const rows = this.#sql.exec<Row>(query, now, count).toArray();
    for (const { admission } of rows) {
      this.#sql.exec("UPDATE network_ends SET dueAt = ? WHERE admission = ?", now + retryMs, admission);
    }
    this.#readDue();
    return rows.map(({ admission, network, json }) => ({ admission, network, end: JSON.parse(json) }));
  }

  /** Unless something newer is to be told of it meanwhile. */
  told({ admission, end }: OwedEnd): void {
    this.#sql.exec("DELETE FROM network_ends WHERE admission = ? AND json = ?", admission, JSON.stringify(end));
    this.#readDue();
  }

  /** The clock was set back. */
  hurry(now: number): void {
    if (this.#dueAt === undefined) return;
    this.#sql.exec("UPDATE network_ends SET dueAt = ?1 WHERE dueAt > ?1", now);
    this.#readDue();
  }

  nextDue(): number | undefined {
    return this.#dueAt;
  }

  #readDue(): void {
    const query = "SELECT MIN(dueAt) AS at FROM network_ends";
    this.#dueAt = this.#sql.exec<{ at: number | null }>(query).one().at ?? undefined;
  }
}
