// Rows of a Durable Object that each expire. When the last one is gone, the object deletes all of its storage.
import type * as z from "zod";
import { migrate } from "../../durable/migrate.ts";
import { OneAlarm } from "../../durable/one-alarm.ts";

const steps = [
  "CREATE TABLE kept (name TEXT PRIMARY KEY, json TEXT NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID",
];

export class ExpiringRows {
  readonly #ctx: DurableObjectState;
  readonly #clock: () => number;
  readonly #alarm: OneAlarm;
  /** Undefined until it is looked up. */
  #hasTable: boolean | undefined;

  /** `act` is what the object's alarm does besides. */
  constructor(ctx: DurableObjectState, name: string, clock: () => number, act = async () => {}) {
    this.#ctx = ctx;
    this.#clock = clock;
    this.#alarm = new OneAlarm(ctx, name, () => this.#ring(act));
  }

  /** Undefined for a row that has expired or does not fit the schema. */
  get<T>(name: string, schema: z.ZodType<T>): T | undefined {
    const [row] = this.#select(name, name);
    return row === undefined ? undefined : read(row, schema);
  }

  has(name: string): boolean {
    return this.#select(name, name).length > 0;
  }

  hasAny(prefix: string): boolean {
    return this.#select(prefix, prefix + lastLetter, 1).length > 0;
  }

  /** Those whose names begin so, in the order of their names. */
  list<T>(prefix: string, schema: z.ZodType<T>): T[] {
    return this.#select(prefix, prefix + lastLetter).flatMap((row) => read(row, schema) ?? []);
  }

  put(name: string, value: unknown, until: number): void {
    this.#makeTable();
    this.#ctx.storage.sql.exec("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", name, JSON.stringify(value), until);
    this.#alarm.arm(until);
  }

  extendAll(prefix: string, until: number): void {
    if (!this.#isMade()) return;
    const extend = "UPDATE kept SET until = ? WHERE name BETWEEN ? AND ?";
    this.#ctx.storage.sql.exec(extend, until, prefix, prefix + lastLetter);
  }

  remove(name: string): void {
    this.#delete("name = ?", name);
  }

  removeAll(prefix: string): void {
    this.#delete("name BETWEEN ? AND ?", prefix, prefix + lastLetter);
  }

  /** Keeps the `count` rows that expire last. */
  keepLast(prefix: string, count: number): void {
    const names = "SELECT name FROM kept WHERE name BETWEEN ? AND ? ORDER BY until DESC LIMIT -1 OFFSET ?";
    this.#delete(`name IN (${names})`, prefix, prefix + lastLetter, count);
  }

  /** The alarm rings at that moment too, whatever ends later. */
  wakeAt(at: number): void {
    this.#alarm.arm(at);
  }

  /** The object's alarm: what is over goes, and what is left rings again. It never throws, whatever was stored. */
  ring(): Promise<void> {
    return this.#alarm.ring();
  }

  async #ring(act: () => Promise<void>): Promise<void> {
    this.#delete("until <= ?", this.#clock());
    if (!this.#isMade()) return this.#forget();
    const [next] = this.#ctx.storage.sql.exec<{ until: number }>("SELECT min(until) AS until FROM kept").toArray();
    this.#alarm.arm(next?.until);
    await act();
  }

  #select(from: string, to: string, count = -1): string[] {
    if (!this.#isMade()) return [];
    const select = "SELECT json FROM kept WHERE name BETWEEN ? AND ? AND until > ? ORDER BY name LIMIT ?";
    const rows = this.#ctx.storage.sql.exec<{ json: string }>(select, from, to, this.#clock(), count);
    return rows.toArray().map(({ json }) => json);
  }

  #delete(which: string, ...values: readonly (string | number)[]): void {
    if (!this.#isMade()) return;
    const { sql } = this.#ctx.storage;
    sql.exec(`DELETE FROM kept WHERE ${which}`, ...values);
    if (sql.exec("SELECT 1 FROM kept LIMIT 1").toArray().length === 0) this.#forget();
  }

  /** Anything else in this storage is of an older layout that no code reads: it is deleted. */
  #makeTable(): void {
    if (this.#isMade()) return;
    this.#forget();
    migrate(this.#ctx.storage, steps);
    this.#hasTable = true;
  }

  #isMade(): boolean {
    if (this.#hasTable !== undefined) return this.#hasTable;
    try {
      this.#ctx.storage.sql.exec("SELECT name, json, until FROM kept LIMIT 0");
      this.#hasTable = true;
    } catch {
      this.#hasTable = false;
    }
    return this.#hasTable;
  }

  #forget(): void {
    this.#hasTable = false;
    this.#ctx.waitUntil(Promise.all([this.#alarm.stop(), this.#ctx.storage.deleteAll()]));
  }
}

/** Behind every letter that a name has. */
const lastLetter = "\uffff";

function read<T>(json: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(json));
  } catch {
    return undefined;
  }
}
