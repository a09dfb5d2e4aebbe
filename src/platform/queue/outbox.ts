// Notices that are owed: written in the transaction of the transition, sent until received or given up.
import { limits } from "../../contract/limits.ts";
import type { JobRow } from "./job.ts";

export interface Notice extends Record<string, SqlStorageValue> {
  key: number;
  job: number;
  url: string;
  origin: string;
  /** The job's status at that moment, as JSON. */
  head: string;
  input: number;
  inputFrom: number;
  inputTo: number;
  output: number | null;
  tries: number;
  dueAt: number;
}

const { tries: maxTries, delayMs, timeoutMs } = limits.webhook;

export class Outbox {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  add(job: JobRow & { webhook: string }, head: string, now: number): void {
    this.#sql.exec(
      `INSERT INTO outbox (job, url, origin, head, input, inputFrom, inputTo, output, tries, dueAt)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`,
      ...[job.key, job.webhook, job.origin, head, job.input, job.inputFrom, job.inputTo, job.output, now],
    );
  }

  /** Notices whose last try died with the object that made it: nothing is owed any more. */
  dropSpent(now: number): Notice[] {
    const query = "DELETE FROM outbox WHERE dueAt <= ? AND tries >= ? RETURNING *";
    return this.#sql.exec<Notice>(query, now, maxTries).toArray();
  }

  /** Takes what is due. A try counts before it is made: a crash in the middle costs a try, never a second storm. */
  claim(now: number, count: number): Notice[] {
    const due = this.#sql.exec<Notice>("SELECT * FROM outbox WHERE dueAt <= ? ORDER BY dueAt LIMIT ?", now, count);
    return due.toArray().map((notice) => {
      const claimed = { ...notice, tries: notice.tries + 1, dueAt: now + timeoutMs + delayMs };
      this.#sql.exec("UPDATE outbox SET tries = ?, dueAt = ? WHERE key = ?", claimed.tries, claimed.dueAt, notice.key);
      return claimed;
    });
  }

  /** Whether the notice is over: received, or tried often enough. */
  settle(notice: Notice, received: boolean, now: number): boolean {
    if (received || notice.tries >= maxTries) {
      this.#sql.exec("DELETE FROM outbox WHERE key = ?", notice.key);
      return true;
    }
    this.#sql.exec("UPDATE outbox SET dueAt = ? WHERE key = ?", now + delayMs, notice.key);
    return false;
  }

  needs(job: number, payload: number): boolean {
    const query = "SELECT 1 FROM outbox WHERE job = ? AND (input = ? OR output = ?) LIMIT 1";
    return this.#sql.exec(query, job, payload, payload).toArray().length > 0;
  }

  nextDue(): number | undefined {
    return this.#sql.exec<{ at: number | null }>("SELECT MIN(dueAt) AS at FROM outbox").one().at ?? undefined;
  }
}
