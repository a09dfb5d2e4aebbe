// Client webhooks that are owed: written once a job, sent until received or given up.
import { limits } from "../../contract/limits.ts";
import type { Tables } from "./tables.ts";

export interface Notice extends Record<string, SqlStorageValue> {
  admission: string;
  url: string;
  tries: number;
  dueAt: number;
}

const { tries: maxTries, delayMs, timeoutMs } = limits.webhook;
/** A row holds two megabytes. */
const partBytes = 1024 * 1024;
const encoder = new TextEncoder();

export class Outbox {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;
  /** Nothing is due before; undefined where nothing is owed. */
  #dueAt: number | undefined;

  constructor(sql: SqlStorage, tables: Tables, dueAt: number | undefined) {
    this.#sql = sql;
    this.#tables = tables;
    this.#dueAt = dueAt;
  }

  add(admission: string, url: string, body: string | Uint8Array, now: number): void {
    this.#tables.need("outbox");
    this.#sql.exec("INSERT INTO outbox (admission, url, tries, dueAt) VALUES (?, ?, 0, ?)", admission, url, now);
    this.#dueAt = Math.min(this.#dueAt ?? now, now);
    const bytes = typeof body === "string" ? encoder.encode(body) : body;
    for (let part = 0; part * partBytes < bytes.byteLength; part++) {
      const piece = bytes.slice(part * partBytes, (part + 1) * partBytes);
      this.#sql.exec("INSERT INTO outbox_bodies (admission, part, bytes) VALUES (?, ?, ?)", admission, part, piece);
    }
  }

  body(admission: string): Uint8Array {
    const query = "SELECT bytes FROM outbox_bodies WHERE admission = ? ORDER BY part";
    const parts = this.#sql.exec<{ bytes: ArrayBuffer }>(query, admission).toArray();
    const whole = new Uint8Array(parts.reduce((sum, { bytes }) => sum + bytes.byteLength, 0));
    for (const [part, { bytes }] of parts.entries()) whole.set(new Uint8Array(bytes), part * partBytes);
    return whole;
  }

  /** Takes what is due. A try counts before it is made: a crash in the middle costs a try, never a second storm. */
  claim(now: number, count: number): Notice[] {
    if (this.#dueAt === undefined || now < this.#dueAt) return [];
    const due = this.#sql.exec<Notice>("SELECT * FROM outbox WHERE dueAt <= ? ORDER BY dueAt LIMIT ?", now, count);
    const claimed = due.toArray().flatMap((notice) => {
      if (notice.tries >= maxTries) this.#remove(notice.admission);
      if (notice.tries >= maxTries) return [];
      const tried = { ...notice, tries: notice.tries + 1, dueAt: now + timeoutMs + delayMs };
      const change = "UPDATE outbox SET tries = ?, dueAt = ? WHERE admission = ?";
      this.#sql.exec(change, tried.tries, tried.dueAt, notice.admission);
      return tried;
    });
    this.#readDue();
    return claimed;
  }

  settle({ admission, tries }: Notice, received: boolean, now: number): void {
    const again = "UPDATE outbox SET dueAt = ? WHERE admission = ?";
    if (!received && tries < maxTries) this.#sql.exec(again, now + delayMs, admission);
    else this.#remove(admission);
    this.#readDue();
  }

  #remove(admission: string): void {
    this.#sql.exec("DELETE FROM outbox WHERE admission = ?", admission);
    this.#sql.exec("DELETE FROM outbox_bodies WHERE admission = ?", admission);
  }

  nextDue(): number | undefined {
    return this.#dueAt;
  }

  #readDue(): void {
    const query = "SELECT MIN(dueAt) AS at FROM outbox";
    this.#dueAt = this.#sql.exec<{ at: number | null }>(query).one().at ?? undefined;
  }
}
