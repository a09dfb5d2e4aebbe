// What the meter of this address's /48 must still be told of its jobs, mostly their ends: each is a row until it was heard.
import { NextDue } from "./next-due.ts";
import type { Tables } from "./tables.ts";
import type { UploadState } from "./upload-row.ts";

/** How an address's job ended, as its network's meter counts it. */
export interface ShareEnd {
  readonly charged: number;
  readonly assumed: 0 | 1;
  readonly endedAt: number;
}

export function shareEndOf({ charged, assumed, endedAt }: ShareEnd): ShareEnd {
  return { charged, assumed, endedAt };
}

/** What became of an address's upload, which goes by its key. */
export interface UploadEnd {
  readonly upload: UploadState;
}

/** The job goes on for longer than a share is held without a word. */
export interface GoesOn {
  readonly goesOn: true;
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
  readonly end: ShareEnd | UploadEnd | GoesOn | null;
}

const retryMs = 10_000;

export class NetworkEnds {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;
  readonly #due: NextDue;

  constructor(sql: SqlStorage, tables: Tables, dueAt: number | undefined) {
    this.#sql = sql;
    this.#tables = tables;
    this.#due = new NextDue(sql, "network_ends", dueAt);
  }

  /** Replaces an earlier end of the same admission. */
  add({ admission, network, end }: OwedEnd, now: number): void {
    this.#tables.need("network_ends");
    const add = "INSERT OR REPLACE INTO network_ends (admission, network, json, dueAt) VALUES (?, ?, ?, ?)";
    this.#sql.exec(add, admission, network, JSON.stringify(end), now);
    this.#due.added(now);
  }

  goesOn(admission: string, network: string, now: number): void {
    this.add({ admission, network, end: { goesOn: true } }, now);
  }

  /** Takes what is due; where it cannot be told now, it is due again. */
  claim(now: number, count: number): OwedEnd[] {
    if (!this.#due.isReached(now)) return [];
    const query = "SELECT * FROM network_ends WHERE dueAt <= ? ORDER BY dueAt LIMIT ?";
    const rows = this.#sql.exec<Row>(query, now, count).toArray();
    for (const { admission } of rows) {
      this.#sql.exec("UPDATE network_ends SET dueAt = ? WHERE admission = ?", now + retryMs, admission);
    }
    this.#due.read();
    return rows.map(({ admission, network, json }) => ({ admission, network, end: JSON.parse(json) }));
  }

  /** The end was told: its row goes, unless a newer end has replaced it. */
  remove({ admission, end }: OwedEnd): void {
    this.#sql.exec("DELETE FROM network_ends WHERE admission = ? AND json = ?", admission, JSON.stringify(end));
    this.#due.read();
  }

  hurry(now: number): void {
    this.#due.hurry(now);
  }

  nextDue(): number | undefined {
    return this.#due.at;
  }
}
