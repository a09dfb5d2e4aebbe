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

  /**
   * Takes what is due first, of none of those hosts. A try counts before it is made: a crash in the middle costs a try,
   * never a second storm.
   */
  claim(now: number, withoutHosts: readonly string[]): Notice | undefined {
    if (this.#dueAt === undefined || now < this.#dueAt) return undefined;
    const due = this.#first(withoutHosts, now);
    if (!due) return undefined;
    if (due.tries >= maxTries) {
      this.#remove(due.admission);
      return this.claim(now, withoutHosts);
    }
    const tried = { ...due, tries: due.tries + 1, dueAt: now + timeoutMs + delayMs };
    this.#change(tried);
    return tried;
  }

  /** No try was made. */
  giveBack(notice: Notice, now: number): void {
    this.#change({ ...notice, tries: notice.tries - 1, dueAt: now + delayMs });
  }

  settle(notice: Notice, received: boolean, now: number): void {
    if (received || notice.tries >= maxTries) this.#remove(notice.admission);
    else this.#change({ ...notice, dueAt: now + delayMs });
  }

  #change({ admission, tries, dueAt }: Notice): void {
    this.#sql.exec("UPDATE outbox SET tries = ?, dueAt = ? WHERE admission = ?", tries, dueAt, admission);
    this.#readDue();
  }

  #remove(admission: string): void {
    this.#sql.exec("DELETE FROM outbox WHERE admission = ?", admission);
    this.#sql.exec("DELETE FROM outbox_bodies WHERE admission = ?", admission);
    this.#readDue();
  }

  /** Of what is owed to other hosts than those. */
  nextDue(withoutHosts: readonly string[] = []): number | undefined {
    if (this.#dueAt === undefined || withoutHosts.length === 0) return this.#dueAt;
    return this.#first(withoutHosts)?.dueAt;
  }

  #first(withoutHosts: readonly string[], dueBy = Number.MAX_SAFE_INTEGER): Notice | undefined {
    const others = withoutHosts.map(() => "AND substr(url, 1, ?) <> ?").join(" ");
    const query = `SELECT * FROM outbox WHERE dueAt <= ? ${others} ORDER BY dueAt LIMIT 1`;
    const hosts = withoutHosts.flatMap((host) => [host.length, host]);
    return this.#sql.exec<Notice>(query, dueBy, ...hosts).toArray()[0];
  }

  #readDue(): void {
    const query = "SELECT MIN(dueAt) AS at FROM outbox";
    this.#dueAt = this.#sql.exec<{ at: number | null }>(query).one().at ?? undefined;
  }
}
