// The media of an owner's finished jobs, for as long as their links live.
import type { GalleryCursor, GalleryRow } from "./gallery-calls.ts";
import type { Tables } from "./tables.ts";

interface Row extends GalleryRow, Record<string, SqlStorageValue> {}

const columns = "key, field, model, cost, size, completedAt, expiresAt";
/** Rows whose time is over are removed so many at once. */
const pruneBatch = 50;

export class Gallery {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;

  constructor(sql: SqlStorage, tables: Tables) {
    this.#sql = sql;
    this.#tables = tables;
  }

  /** The same link once, whoever tells of it. */
  add(owner: string, { key, field, model, cost, size, completedAt, expiresAt }: GalleryRow, now: number): void {
    this.#tables.need("media");
    this.#sql.exec(
      `INSERT OR IGNORE INTO media (owner, ${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      owner,
      key,
      field,
      model,
      cost,
      size,
      completedAt,
      expiresAt,
    );
    this.prune(now);
  }

  /** Undefined for a link that its owner has not had. */
  find(owner: string, key: string): "listed" | "removed" | undefined {
    if (!this.#tables.has("media")) return undefined;
    const select = "SELECT removed FROM media WHERE owner = ? AND key = ?";
    const [row] = this.#sql.exec<{ removed: number }>(select, owner, key).toArray();
    return row && (row.removed ? "removed" : "listed");
  }

  prune(now: number): void {
    if (!this.#tables.has("media")) return;
    const over = "SELECT rowid FROM media WHERE expiresAt <= ? LIMIT ?";
    this.#sql.exec(`DELETE FROM media WHERE rowid IN (${over})`, now, pruneBatch);
  }

  /** Newest first, after the one that the cursor names. */
  page(owner: string, before: GalleryCursor | undefined, count: number, now: number): GalleryRow[] {
    if (!this.#tables.has("media")) return [];
    const { completedAt, key } = before ?? { completedAt: Number.MAX_SAFE_INTEGER, key: "" };
    return this.#sql
      .exec<Row>(
        `SELECT ${columns} FROM media
         WHERE owner = ? AND (completedAt, key) < (?, ?) AND expiresAt > ? AND removed = 0
         ORDER BY completedAt DESC, key DESC LIMIT ?`,
        owner,
        completedAt,
        key,
        now,
        count,
      )
      .toArray();
  }

  /**
   * The row stays, marked as removed, until the link expires: a late report of the job's end must not list it again.
   */
  remove(owner: string, key: string): void {
    if (!this.#tables.has("media")) return;
    this.#sql.exec("UPDATE media SET removed = 1 WHERE owner = ? AND key = ?", owner, key);
  }
}
