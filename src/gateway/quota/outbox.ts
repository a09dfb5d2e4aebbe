// Client webhooks that are owed: written once a job, sent until received or given up.
import { limits } from "../../contract/limits.ts";

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
  /** Nothing is due before; undefined where only SQL knows. */
  #notBefore: number | undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  add(admission: string, url: string, body: string, now: number): void {
    this.#sql.exec("INSERT INTO outbox (admission, url, tries, dueAt) VALUES (?, ?, 0, ?)", admission, url, now);
    this.#mayBeDue(now);
    const bytes = encoder.encode(body);
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
    if (now < (this.nextDue() ?? Number.POSITIVE_INFINITY)) return [];
    this.#notBefore = undefined;
    const due = this.#sql.exec<Notice>("SELECT * FROM outbox WHERE dueAt <= ? ORDER BY dueAt LIMIT ?", now, count);
    return due.toArray().flatMap((notice) => {
      if (notice.tries >= maxTries) this.#remove(notice.admission);
      if (notice.tries >= maxTries) return [];
      const claimed = { ...notice, tries: notice.tries + 1, dueAt: now + timeoutMs + delayMs };
      const change = "UPDATE outbox SET tries = ?, dueAt = ? WHERE admission = ?";
      this.#sql.exec(change, claimed.tries, claimed.dueAt, notice.admission);
      return claimed;
    });
  }

  settle({ admission, tries }: Notice, received: boolean, now: number): void {
    if (!received && tries < maxTries) {
      this.#sql.exec("UPDATE outbox SET dueAt = ? WHERE admission = ?", now + delayMs, admission);
      this.#mayBeDue(now + delayMs);
      return;
    }
    this.#remove(admission);
  }

  #remove(admission: string): void {
    this.#sql.exec("DELETE FROM outbox WHERE admission = ?", admission);
    this.#sql.exec("DELETE FROM outbox_bodies WHERE admission = ?", admission);
  }

  /** Or earlier, where what was due is gone. */
  nextDue(): number | undefined {
    const query = "SELECT MIN(dueAt) AS at FROM outbox";
    this.#notBefore ??= this.#sql.exec<{ at: number | null }>(query).one().at ?? Number.POSITIVE_INFINITY;
    return Number.isFinite(this.#notBefore) ? this.#notBefore : undefined;
  }

  #mayBeDue(at: number): void {
    if (this.#notBefore !== undefined) this.#notBefore = Math.min(this.#notBefore, at);
  }
}
