// Idempotency keys. For a day the same key and body stand for the same admission, whatever became of it.
import { dayMs } from "./periods.ts";
import type { Tables } from "./tables.ts";

interface Row extends Record<string, SqlStorageValue> {
  owner: string;
  key: string;
  fingerprint: string;
  /** The digest of a large body, whose fingerprint covers only its first bytes. Null until the body has streamed by. */
  digest: string | null;
  admission: string;
  upstreamId: string | null;
  expiresAt: number;
}

type NewRow = Pick<Row, "fingerprint" | "admission"> & Partial<Pick<Row, "upstreamId">>;

/** Rows whose time is over are removed so many at once. */
const pruneBatch = 50;
const whose = "owner = ? AND key = ? AND admission = ?";

export class Idempotency {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;

  constructor(sql: SqlStorage, tables: Tables) {
    this.#sql = sql;
    this.#tables = tables;
  }

  find(owner: string, key: string, now: number): Row | undefined {
    if (!this.#tables.has("idempotency")) return undefined;
    const query = "SELECT * FROM idempotency WHERE owner = ? AND key = ? AND expiresAt > ?";
    return this.#sql.exec<Row>(query, owner, key, now).toArray()[0];
  }

  /** Replaces an older row of the same key. */
  add(owner: string, key: string, { fingerprint, admission, upstreamId }: NewRow, now: number) {
    this.#tables.need("idempotency");
    this.#sql.exec(
      `INSERT OR REPLACE INTO idempotency (owner, key, fingerprint, admission, upstreamId, expiresAt) VALUES (?, ?, ?, ?, ?, ?)`,
      owner,
      key,
      fingerprint,
      admission,
      upstreamId ?? null,
      now + dayMs,
    );
    this.prune(now);
  }

  bind(owner: string, key: string, admission: string, upstreamId: string): void {
    this.#sql.exec(`UPDATE idempotency SET upstreamId = ? WHERE ${whose}`, upstreamId, owner, key, admission);
  }

  identify(owner: string, key: string, admission: string, digest: string): void {
    this.#sql.exec(`UPDATE idempotency SET digest = ? WHERE ${whose}`, digest, owner, key, admission);
  }

  free(owner: string, key: string, admission: string): void {
    this.#sql.exec(`DELETE FROM idempotency WHERE ${whose}`, owner, key, admission);
  }

  prune(now: number): void {
    if (!this.#tables.has("idempotency")) return;
    const over = "SELECT owner, key FROM idempotency WHERE expiresAt <= ? LIMIT ?";
    this.#sql.exec(`DELETE FROM idempotency WHERE (owner, key) IN (${over})`, now, pruneBatch);
  }
}
