// How many requests were admitted lately: a sliding counter an account, window and scope, in memory and in SQL.
import { dayMs, type Window, windowMs } from "./periods.ts";
import { SlidingCounter } from "./sliding-counter.ts";
import { payersAccount } from "./spending.ts";

interface Key {
  readonly account: string;
  readonly per: Window;
  readonly scope: string;
}
export interface Counter extends Key {
  readonly sliding: SlidingCounter;
  emptyAt: number;
  /** What rows of jobs call it; undefined until it is in SQL. */
  id: number | undefined;
}
interface Row extends Key, Record<string, SqlStorageValue> {
  newest: number;
  counts: ArrayBuffer;
  emptyAt: number;
  id: number | null;
}

const keptTokenMs = 2 * dayMs;

export class RequestWindows {
  readonly #sql: SqlStorage;
  readonly #counters = new Map<string, Counter>();
  readonly #byId = new Map<number, Counter>();
  readonly #unwritten = new Set<Counter>();
  #lastId = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const { account, per, scope, newest, counts, emptyAt, id } of sql.exec<Row>("SELECT * FROM windows")) {
      const sliding = SlidingCounter.read(windowMs[per], newest, counts);
      this.#keep({ account, per, scope, sliding, emptyAt, id: id ?? undefined });
    }
  }

  /** Undefined where nothing was counted yet. */
  find(account: string, per: Window, scope: string): SlidingCounter | undefined {
    return this.#counters.get(keyOf(account, per, scope))?.sliding;
  }

  counter(account: string, per: Window, scope: string): Counter {
    const known = this.#counters.get(keyOf(account, per, scope));
    if (known) return known;
    const sliding = new SlidingCounter(windowMs[per]);
    return this.#keep({ account, per, scope, sliding, emptyAt: 0, id: undefined });
  }

  #keep(counter: Counter): Counter {
    this.#counters.set(keyOf(counter.account, counter.per, counter.scope), counter);
    if (counter.id !== undefined) this.#byId.set(counter.id, counter);
    this.#lastId = Math.max(this.#lastId, counter.id ?? 0);
    return counter;
  }

  /** Those that a job's row names. */
  named(ids: string): Counter[] {
    return ids.split(" ").flatMap((id) => this.#byId.get(Number(id)) ?? []);
  }

  add(counter: Counter, now: number): void {
    counter.emptyAt = Math.min(counter.sliding.add(now), endOf(counter.account, now));
    this.#unwritten.add(counter);
  }

  write(): void {
    for (const counter of this.#unwritten) {
      counter.id ??= this.#lastId + 1;
      this.#keep(counter);
      const { account, per, scope, sliding, emptyAt, id } = counter;
      this.#sql.exec(
        "INSERT OR REPLACE INTO windows (account, per, scope, newest, counts, emptyAt, id) VALUES (?, ?, ?, ?, ?, ?, ?)",
        ...[account, per, scope, sliding.newest, sliding.bytes, emptyAt, id],
      );
    }
    this.#unwritten.clear();
  }

  /** Only the payer's own: a token narrows whatever the operator forgives. */
  reset(account: string): void {
    this.#forget(this.#sql.exec<Row>("DELETE FROM windows WHERE account = ? RETURNING *", account));
  }

  prune(now: number): void {
    this.#forget(this.#sql.exec<Row>("DELETE FROM windows WHERE emptyAt <= ? RETURNING *", now));
  }

  #forget(rows: Iterable<Row>): void {
    for (const { account, per, scope, id } of rows) {
      this.#counters.delete(keyOf(account, per, scope));
      if (id !== null) this.#byId.delete(id);
    }
  }
}

/** A token does not outlive a day, so neither does its longest window. */
function endOf(account: string, now: number): number {
  return account === payersAccount ? Number.POSITIVE_INFINITY : now + keptTokenMs;
}

function keyOf(account: string, per: Window, scope: string): string {
  return `${per} ${scope} ${account}`;
}
