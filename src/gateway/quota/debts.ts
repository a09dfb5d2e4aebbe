// What a meter must still do about a job's end: bring its webhook's body, ask for an end that its owner has not seen, keep
// its result, or forget its input. Each debt is a row until it is done, so that no lost call loses it.
import { limits } from "../../contract/limits.ts";
import { Bodies } from "./bodies.ts";
import { NextDue } from "./next-due.ts";
import type { Tables } from "./tables.ts";

/**
 * - `webhook`: the client's webhook is without a body.
 * - `untold`: the upstream is to be asked for the end: only a notice told it, it was assumed, or it may be that of a run
 *   before a retry. The owner has not seen it.
 * - `result`: KV has not taken the result, so it is kept here.
 * - `input`: kept for the webhook of a retry, until none can be made.
 */
export type DebtKind = "webhook" | "untold" | "result" | "input";

export interface Debt extends Record<string, SqlStorageValue> {
  admission: string;
  kind: DebtKind;
  since: number;
  dueAt: number;
  tries: number;
}

/** After a try, and twice as long after each further one. */
const retryMs = { min: 10_000, max: 60 * 60_000 };

export class Debts {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;
  readonly #results: Bodies;
  readonly #due: NextDue;

  constructor(sql: SqlStorage, tables: Tables, dueAt: number | undefined) {
    this.#sql = sql;
    this.#tables = tables;
    this.#results = new Bodies(sql, "result_bodies");
    this.#due = new NextDue(sql, "debts", dueAt);
    // An older release has written the state, and knew of none.
    if (dueAt === undefined && tables.has("debts")) this.#due.read();
  }

  /** What is owed already stays as it is. */
  owe(admission: string, kind: DebtKind, now: number, dueAt: number): void {
    this.#tables.need("debts");
    const add = "INSERT OR IGNORE INTO debts (admission, kind, since, dueAt, tries) VALUES (?, ?, ?, ?, 0)";
    this.#sql.exec(add, admission, kind, now, dueAt);
    this.#due.added(dueAt);
  }

  /** Instead of an older one, which may be on its way to KV at this moment. */
  oweResult(admission: string, body: string | Uint8Array, now: number): void {
    this.pay(admission, "result");
    this.owe(admission, "result", now, now + retryMs.min);
    this.#results.add(admission, body);
  }

  owes(admission: string, kind: DebtKind): boolean {
    if (!this.#tables.has("debts")) return false;
    const query = "SELECT 1 FROM debts WHERE admission = ? AND kind = ?";
    return this.#sql.exec(query, admission, kind).toArray().length > 0;
  }

  /** Undefined if KV has it, or there is none. */
  result(admission: string): Uint8Array | undefined {
    const body = this.#tables.has("debts") ? this.#results.read(admission) : undefined;
    return body && body.byteLength > 0 ? body : undefined;
  }

  /** Takes what is due; where it cannot be paid now, it is due again. */
  claim(now: number, count: number): Debt[] {
    if (!this.#due.isReached(now)) return [];
    const query = "SELECT * FROM debts WHERE dueAt <= ? ORDER BY dueAt LIMIT ?";
    const due = this.#sql.exec<Debt>(query, now, count).toArray();
    for (const { admission, kind, tries } of due) {
      const next = now + Math.min(retryMs.max, retryMs.min * 2 ** Math.min(tries, 16));
      const postpone = "UPDATE debts SET dueAt = ?, tries = ? WHERE admission = ? AND kind = ?";
      this.#sql.exec(postpone, next, tries + 1, admission, kind);
    }
    this.#due.read();
    return due;
  }

  /** As it was when it was claimed: what is owed anew since, or was claimed again, stays. */
  payClaimed({ admission, kind, since, tries }: Debt): void {
    if (!this.#tables.has("debts")) return;
    const query = "SELECT 1 FROM debts WHERE admission = ? AND kind = ? AND since = ? AND tries = ?";
    const isSame = this.#sql.exec(query, admission, kind, since, tries + 1).toArray().length > 0;
    if (isSame) this.pay(admission, kind);
  }

  /** Instead of after the usual wait. */
  postpone({ admission, kind }: Debt, dueAt: number): void {
    if (!this.#tables.has("debts")) return;
    this.#sql.exec("UPDATE debts SET dueAt = ? WHERE admission = ? AND kind = ?", dueAt, admission, kind);
    this.#due.read();
  }

  pay(admission: string, kind: DebtKind): void {
    if (!this.#tables.has("debts")) return;
    this.#sql.exec("DELETE FROM debts WHERE admission = ? AND kind = ?", admission, kind);
    if (kind === "result") this.#results.remove(admission);
    this.#due.read();
  }

  /** The clock was set back: what is to be tried is due now. An input is kept for its whole time, counted from now. */
  hurry(now: number): void {
    if (this.#due.at === undefined) return;
    const [tried, kept] = [now, now + limits.runRetentionMs];
    const sooner = "UPDATE debts SET dueAt = MIN(dueAt, CASE kind WHEN 'input' THEN ? ELSE ? END) WHERE dueAt > ?";
    this.#sql.exec(sooner, kept, tried, now);
    this.#due.read();
  }

  nextDue(): number | undefined {
    return this.#due.at;
  }
}
