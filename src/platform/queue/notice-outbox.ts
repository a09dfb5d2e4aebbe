// Notices that wait to be sent: stored in the transaction of the move, kept until received or given up.
import { limits } from "../../contract/limits.ts";
import type { JobRow } from "./job.ts";

export interface JobNotice extends Record<string, SqlStorageValue> {
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

export class NoticeOutbox {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  add(job: JobRow & { webhook: string }, head: string, now: number): void {
    this.#sql.exec(
      `INSERT INTO outbox (job, url, origin, head, input, inputFrom, inputTo, output, tries, dueAt)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`,
      job.key,
      job.webhook,
      job.origin,
      head,
      job.input,
      job.inputFrom,
      job.inputTo,
      job.output,
      now,
    );
  }

  /** Removes notices whose last try ended in a restart of this object. */
  dropSpent(now: number): JobNotice[] {
    const query = "DELETE FROM outbox WHERE dueAt <= ? AND tries >= ? RETURNING *";
    return this.#sql.exec<JobNotice>(query, now, maxTries).toArray();
  }

  /** Takes due notices. A try is counted before it is made, so that a crash loop does not send without end. */
  claim(now: number, count: number): JobNotice[] {
    const due = this.#sql.exec<JobNotice>("SELECT * FROM outbox WHERE dueAt <= ? ORDER BY dueAt LIMIT ?", now, count);
    return due.toArray().map((notice) => {
      const claimed = { ...notice, tries: notice.tries + 1, dueAt: now + timeoutMs + delayMs };
      this.#sql.exec("UPDATE outbox SET tries = ?, dueAt = ? WHERE key = ?", claimed.tries, claimed.dueAt, notice.key);
      return claimed;
    });
  }

  /** Tells whether the notice is done: received, or tried often enough. */
  settle(notice: JobNotice, received: boolean, now: number): boolean {
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
