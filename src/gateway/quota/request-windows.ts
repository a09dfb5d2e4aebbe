// How many requests were admitted lately: a sliding counter an account, window and scope, in memory and in SQL.
import { dayMs, type Window, windowMs } from "./periods.ts";
import { SlidingCounter } from "./sliding-counter.ts";
import { payersAccount } from "./spending.ts";

interface Row extends Record<string, SqlStorageValue> {
  account: string;
  per: Window;
  scope: string;
  newest: number;
  counts: ArrayBuffer;
}

const keptTokenMs = 2 * dayMs;

export class RequestWindows {
  readonly #sql: SqlStorage;
  readonly #counters = new Map<string, SlidingCounter>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const { account, per, scope, newest, counts } of sql.exec<Row>("SELECT * FROM windows")) {
      this.#counters.set(keyOf(account, per, scope), SlidingCounter.read(windowMs[per], newest, counts));
    }
  }

  /** Undefined where nothing was counted yet. */
  find(account: string, per: Window, scope: string): SlidingCounter | undefined {
    return this.#counters.get(keyOf(account, per, scope));
  }

  add(account: string, per: Window, scope: string, now: number): void {
    const key = keyOf(account, per, scope);
    const counter = this.#counters.get(key) ?? new SlidingCounter(windowMs[per]);
    this.#counters.set(key, counter);
    counter.add(now);
    this.#sql.exec(
      "INSERT OR REPLACE INTO windows (account, per, scope, newest, counts, emptyAt) VALUES (?, ?, ?, ?, ?, ?)",
      ...[account, per, scope, counter.newest, counter.bytes, Math.min(counter.fallsTo(0, now), endOf(account, now))],
    );
  }

  /** Only the payer's own: a token narrows whatever the operator forgives. */
  reset(account: string): void {
    this.#forget(this.#sql.exec<Row>("DELETE FROM windows WHERE account = ? RETURNING *", account));
  }

  prune(now: number): void {
    this.#forget(this.#sql.exec<Row>("DELETE FROM windows WHERE emptyAt <= ? RETURNING *", now));
  }

  #forget(rows: Iterable<Row>): void {
    for (const { account, per, scope } of rows) this.#counters.delete(keyOf(account, per, scope));
  }
}

/** A token does not outlive a day, so neither does its longest window. */
function endOf(account: string, now: number): number {
  return account === payersAccount ? Number.POSITIVE_INFINITY : now + keptTokenMs;
}

function keyOf(account: string, per: Window, scope: string): string {
  return `${per} ${scope} ${account}`;
}
