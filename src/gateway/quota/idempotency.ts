// Idempotency keys: a day long the same key and body are the same job.
import { dayMs } from "./periods.ts";

interface Row extends Record<string, SqlStorageValue> {
  owner: string;
  key: string;
  fingerprint: string;
  /** Of a large body, whose fingerprint is that of its beginning; null until it has passed. */
  digest: string | null;
  admission: string;
  ref: string | null;
  expiresAt: number;
}

export class Idempotency {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  find(owner: string, key: string, now: number): Row | undefined {
    const query = "SELECT * FROM idempotency WHERE owner = ? AND key = ? AND expiresAt > ?";
    return this.#sql.exec<Row>(query, owner, key, now).toArray()[0];
  }

  /** Goes before an older one of the same key. */
  add(owner: string, key: string, { fingerprint, admission }: Pick<Row, "fingerprint" | "admission">, now: number) {
    this.#sql.exec(
      `INSERT OR REPLACE INTO idempotency (owner, key, fingerprint, admission, expiresAt) VALUES (?, ?, ?, ?, ?)`,
      ...[owner, key, fingerprint, admission, now + dayMs],
    );
  }

  bind(owner: string, key: string, admission: string, ref: string): void {
    const where = "owner = ? AND key = ? AND admission = ?";
    this.#sql.exec(`UPDATE idempotency SET ref = ? WHERE ${where}`, ref, owner, key, admission);
  }

  identify(owner: string, key: string, admission: string, digest: string): void {
    const where = "owner = ? AND key = ? AND admission = ?";
    this.#sql.exec(`UPDATE idempotency SET digest = ? WHERE ${where}`, digest, owner, key, admission);
  }

  free(owner: string, key: string, admission: string): void {
    const where = "owner = ? AND key = ? AND admission = ?";
    this.#sql.exec(`DELETE FROM idempotency WHERE ${where}`, owner, key, admission);
  }

  prune(now: number): void {
    this.#sql.exec("DELETE FROM idempotency WHERE expiresAt <= ?", now);
  }
}
