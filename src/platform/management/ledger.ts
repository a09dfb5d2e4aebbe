// What ran, hour by hour and price by price: clocks that run, executed time that queues report, and the sums of both.
import { hourMs, hourOf, hoursOf } from "../hours.ts";

export type Kind = "pod" | "endpoint" | "volume";

/** All that a price hangs on, or that billing is asked by. When any of it changes, time is counted on another meter. */
export interface Circumstances {
  readonly kind: Kind;
  readonly resource: string;
  readonly gpuTypeId: string;
  readonly microUsdPerHour: number;
  readonly gb: number;
  readonly dataCenterId: string;
  readonly templateId: string;
  readonly imageName: string;
  /** The template is another account's, which earns by it. */
  readonly borrowed: boolean;
}

/** All that a meter has counted in an hour, so that to book it twice changes nothing. */
export interface Executed extends Record<string, SqlStorageValue> {
  meter: number;
  hour: number;
  worker: string;
  ms: number;
}

export interface Credit extends Record<string, SqlStorageValue> {
  microUsd: number;
  ms: number;
}

/** An hour's amount is rounded down, whenever it was counted: so every sum is the sum of the same hours. */
export const amountSql = `u.ms * m.microUsdPerHour / ${hourMs}`;

export class Ledger {
  readonly #sql: SqlStorage;
  readonly #onBorrowed: (templateId: string) => void;

  constructor(sql: SqlStorage, onBorrowed: (templateId: string) => void) {
    this.#sql = sql;
    this.#onBorrowed = onBorrowed;
  }

  meter(circumstances: Circumstances): number {
    const { kind, resource, gpuTypeId, microUsdPerHour, gb, dataCenterId, templateId, imageName } = circumstances;
    const values = [resource, kind, gpuTypeId, microUsdPerHour, gb, dataCenterId, templateId, imageName];
    const names = "resource, kind, gpuTypeId, microUsdPerHour, gb, dataCenterId, templateId, imageName, borrowed";
    const bindings = [...values, circumstances.borrowed ? 1 : 0];
    this.#sql.exec(`INSERT OR IGNORE INTO meters (${names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, ...bindings);
    const query = `SELECT key FROM meters WHERE (${names}) = (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    return this.#sql.exec<{ key: number }>(query, ...bindings).one().key;
  }

  /** From now on the resource's time is counted so; what ran before stays as it was. */
  start(circumstances: Circumstances, now: number): void {
    this.stop(circumstances.resource, now);
    const meter = this.meter(circumstances);
    this.#sql.exec("INSERT INTO clocks (resource, meter, since) VALUES (?, ?, ?)", circumstances.resource, meter, now);
  }

  stop(resource: string, now: number): void {
    const query = "DELETE FROM clocks WHERE resource = ? RETURNING meter, since";
    for (const { meter, since } of this.#sql.exec<{ meter: number; since: number }>(query, resource).toArray()) {
      this.#add(meter, since, now);
    }
  }

  get hasClocks(): boolean {
    return this.#sql.exec("SELECT 1 FROM clocks LIMIT 1").toArray().length > 0;
  }

  /** Brings the hours of everything that runs up to now. */
  accrue(now: number): void {
    const running = this.#sql.exec<{ meter: number; since: number }>("SELECT meter, since FROM clocks").toArray();
    for (const { meter, since } of running) this.#add(meter, since, now);
    this.#sql.exec("UPDATE clocks SET since = ?1 WHERE since < ?1", now);
  }

  #add(meter: number, from: number, to: number): void {
    const { kind, templateId, borrowed } = this.#describe(meter);
    for (const { hour, ms } of hoursOf(from, to)) {
      this.#sql.exec(
        `INSERT INTO usage (kind, hour, meter, worker, ms) VALUES (?, ?, ?, '', ?)
         ON CONFLICT DO UPDATE SET ms = ms + excluded.ms`,
        ...[kind, hour, meter, ms],
      );
    }
    if (borrowed) this.#onBorrowed(templateId);
  }

  /** What a queue reports are sums, which only grow: the larger is the later, and a report that comes twice adds nothing. */
  book(resource: string, executed: readonly Executed[]): void {
    for (const { meter, hour, worker, ms } of executed) {
      const { kind, templateId, borrowed, resource: owner } = this.#describe(meter);
      if (owner !== resource) continue;
      this.#sql.exec(
        `INSERT INTO usage (kind, hour, meter, worker, ms) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET ms = MAX(ms, excluded.ms)`,
        ...[kind, hour, meter, worker, ms],
      );
      if (borrowed) this.#onBorrowed(templateId);
    }
  }

  /** All that was ever spent with another account's template. */
  spentWith(templateId: string): Credit {
    const query = `SELECT COALESCE(SUM(${amountSql}), 0) AS microUsd, COALESCE(SUM(u.ms), 0) AS ms
      FROM meters m JOIN usage u ON u.meter = m.key WHERE m.borrowed = 1 AND m.templateId = ?`;
    return this.#sql.exec<Credit>(query, templateId).one();
  }

  #describe(meter: number) {
    const query = "SELECT kind, resource, templateId, borrowed FROM meters WHERE key = ?";
    type Described = { kind: Kind; resource: string; templateId: string; borrowed: number };
    return this.#sql.exec<Described>(query, meter).one();
  }
}

export function nextFullHour(now: number): number {
  return (hourOf(now) + 1) * hourMs;
}
