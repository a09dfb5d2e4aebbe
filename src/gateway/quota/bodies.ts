// Bodies that are larger than a row may be, in parts.
const partBytes = 1024 * 1024;
const encoder = new TextEncoder();

export class Bodies {
  readonly #sql: SqlStorage;
  /** It has the columns `admission`, `part` and `bytes`. */
  readonly #table: "outbox_bodies" | "result_bodies";

  constructor(sql: SqlStorage, table: "outbox_bodies" | "result_bodies") {
    this.#sql = sql;
    this.#table = table;
  }

  add(admission: string, body: string | Uint8Array): void {
    const bytes = typeof body === "string" ? encoder.encode(body) : body;
    for (let part = 0; part * partBytes < bytes.byteLength; part++) {
      const piece = bytes.slice(part * partBytes, (part + 1) * partBytes);
      this.#sql.exec(`INSERT INTO ${this.#table} (admission, part, bytes) VALUES (?, ?, ?)`, admission, part, piece);
    }
  }

  read(admission: string): Uint8Array {
    const query = `SELECT bytes FROM ${this.#table} WHERE admission = ? ORDER BY part`;
    const parts = this.#sql.exec<{ bytes: ArrayBuffer }>(query, admission).toArray();
    const whole = new Uint8Array(parts.reduce((sum, { bytes }) => sum + bytes.byteLength, 0));
    for (const [part, { bytes }] of parts.entries()) whole.set(new Uint8Array(bytes), part * partBytes);
    return whole;
  }

  bytesOf(admission: string): number {
    const query = `SELECT TOTAL(length(bytes)) AS bytes FROM ${this.#table} WHERE admission = ?`;
    return this.#sql.exec<{ bytes: number }>(query, admission).one().bytes;
  }

  remove(admission: string): void {
    this.#sql.exec(`DELETE FROM ${this.#table} WHERE admission = ?`, admission);
  }
}
