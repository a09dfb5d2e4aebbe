// The uploads of a payer, a row each: open while its URL may be used, kept while its file lies in R2, over once it counts for
// nothing. What is over stays until its file is surely gone: it is a debt to R2.
import { NextDue } from "./next-due.ts";
import type { Tables } from "./tables.ts";
import { UploadCounts } from "./upload-counts.ts";
import type { UploadCursor, UploadRow } from "./upload-row.ts";

interface Row extends UploadRow, Record<string, SqlStorageValue> {}

const columns = "key, owner, account, network, type, bytes, state, day, createdAt, expiresAt, busyUntil, dueAt";
/** No clock runs ahead for so long. */
const surelyMs = 2 * 60 * 60_000;
/** After a try that R2 refused, and twice as long after each further one. */
const retryMs = { min: 10_000, max: 60 * 60_000 };

export class UploadRows {
  readonly counts: UploadCounts;
  readonly #sql: SqlStorage;
  readonly #tables: Tables;
  readonly #due: NextDue;

  constructor(sql: SqlStorage, tables: Tables, dueAt: number | undefined) {
    this.#sql = sql;
    this.#tables = tables;
    this.counts = new UploadCounts(sql, tables);
    this.#due = new NextDue(sql, "uploads", dueAt);
    // An older release has written the state, and knew of none.
    if (dueAt === undefined && tables.has("uploads")) this.#due.read();
  }

  add(row: Omit<UploadRow, "state" | "busyUntil">): void {
    this.#tables.need("uploads");
    this.#tables.need("uploads_open");
    const { key, owner, account, network, type, bytes, day, createdAt, expiresAt, dueAt } = row;
    const values = [key, owner, account, network, type, bytes, "open", day, createdAt, expiresAt, 0, dueAt];
    this.#sql.exec(`INSERT INTO uploads (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, ...values);
    this.counts.reserve(row);
    this.#due.added(dueAt);
  }

  find(key: string): UploadRow | undefined {
    if (!this.#tables.has("uploads")) return undefined;
    return this.#sql.exec<Row>(`SELECT ${columns} FROM uploads WHERE key = ?`, key).toArray()[0];
  }

  /** Whether so many are announced, and their files not there. Costs that many rows of an index at most. */
  hasOpen(count: number): boolean {
    if (!this.#tables.has("uploads")) return false;
    const query = "SELECT 1 FROM uploads WHERE state = 'open' LIMIT 1 OFFSET ?";
    return this.#sql.exec(query, count - 1).toArray().length > 0;
  }

  /** Its PUT has begun, and may write until then. */
  occupy({ key, dueAt }: UploadRow, until: number): void {
    const change = "UPDATE uploads SET busyUntil = ?2, dueAt = ?3 WHERE key = ?1";
    this.#sql.exec(change, key, until, Math.max(dueAt, until));
    this.#due.read();
  }

  keep(row: UploadRow): void {
    this.#sql.exec("UPDATE uploads SET state = 'kept', dueAt = expiresAt WHERE key = ?", row.key);
    this.counts.keep(row);
    this.#due.read();
  }

  /** It counts for nothing any more, but that what was uploaded stays uploaded. */
  end(row: UploadRow, now: number): void {
    if (row.state === "over") return;
    this.counts.end(row.account, row.day, row.state, row.bytes);
    if (row.busyUntil === 0) this.#sql.exec("DELETE FROM uploads WHERE key = ?", row.key);
    else this.#endAt(row, now);
    this.#due.read();
  }

  /** A PUT that is still under way may write the file again: it is removed after that. */
  #endAt({ key, busyUntil }: UploadRow, now: number): void {
    const change = "UPDATE uploads SET state = 'over', dueAt = ? WHERE key = ?";
    this.#sql.exec(change, Math.max(busyUntil, now), key);
  }

  /** Whose time is over by now, at once however many they are. Answers with those that a network counts as well. */
  endOverdue(now: number): readonly UploadRow[] {
    if (!this.#due.isReached(now)) return [];
    const isOverdue = "dueAt <= ?1 AND state <> 'over'";
    const sums = `SELECT account, day, state, SUM(bytes) AS bytes FROM uploads WHERE ${isOverdue} GROUP BY account, day, state`;
    for (const { account, day, state, bytes } of this.#sql.exec<Row>(sums, now).toArray()) {
      this.counts.end(account, day, state, bytes);
    }
    const shared = `SELECT ${columns} FROM uploads WHERE ${isOverdue} AND network IS NOT NULL`;
    const ended = this.#sql.exec<Row>(shared, now).toArray();
    this.#sql.exec(`DELETE FROM uploads WHERE ${isOverdue} AND busyUntil = 0`, now);
    this.#sql.exec(`UPDATE uploads SET state = 'over', dueAt = MAX(busyUntil, ?1) WHERE ${isOverdue}`, now);
    this.#due.read();
    return ended;
  }

  /** Files to be removed; where R2 cannot be reached now, they are due again. */
  claimFiles(now: number, count: number): string[] {
    if (!this.#due.isReached(now)) return [];
    const query = "SELECT key, tries FROM uploads WHERE dueAt <= ? AND state = 'over' ORDER BY dueAt LIMIT ?";
    const rows = this.#sql.exec<{ key: string; tries: number }>(query, now, count).toArray();
    for (const { key, tries } of rows) {
      const next = now + Math.min(retryMs.max, retryMs.min * 2 ** Math.min(tries, 16));
      this.#sql.exec("UPDATE uploads SET dueAt = ?2, tries = ?3 WHERE key = ?1", key, next, tries + 1);
    }
    if (rows.length > 0) this.#due.read();
    return rows.map(({ key }) => key);
  }

  /** If a clock that ran ahead ended them, a PUT may still write them: they are removed once more when it cannot. */
  filesRemoved(keys: readonly string[], now: number): void {
    const again = "UPDATE uploads SET dueAt = busyUntil + ?2 WHERE key = ?1 AND busyUntil + ?2 > ?3";
    for (const key of keys) {
      this.#sql.exec(
        "DELETE FROM uploads WHERE key = ?1 AND state = 'over' AND busyUntil + ?2 <= ?3",
        key,
        surelyMs,
        now,
      );
      this.#sql.exec(again, key, surelyMs, now);
    }
    this.#due.read();
  }

  /** Newest first, after the one that the cursor names. */
  page(owner: string, before: UploadCursor | undefined, count: number, now: number): UploadRow[] {
    if (!this.#tables.has("uploads")) return [];
    const { createdAt, key } = before ?? { createdAt: Number.MAX_SAFE_INTEGER, key: "" };
    return this.#sql
      .exec<Row>(
        `SELECT ${columns} FROM uploads
         WHERE owner = ? AND state = 'kept' AND (createdAt, key) < (?, ?) AND expiresAt > ?
         ORDER BY createdAt DESC, key DESC LIMIT ?`,
        owner,
        createdAt,
        key,
        now,
        count,
      )
      .toArray();
  }

  /** The clock was set back: a file that waits for another try is due now. Links end at the moment that they name. */
  hurry(now: number): void {
    if (!this.#tables.has("uploads")) return;
    this.#sql.exec("UPDATE uploads SET dueAt = ?1 WHERE state = 'over' AND tries > 0 AND dueAt > ?1", now);
    this.#due.read();
  }

  nextDue(): number | undefined {
    return this.#due.at;
  }
}
