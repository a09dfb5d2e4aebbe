// What ran, hour by hour and price by price: clocks that run, executed time that queues report, and the sums of both.
import { hourMs, hourOf, hoursOf } from "../hours.ts";
import type { ExecutedRow } from "../queue/executed.ts";

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
}

/** An hour's amount is rounded down, whenever it was counted: so every sum is the sum of the same hours. */
export const amountSql = `u.ms * m.microUsdPerHour / ${hourMs}`;

export class Ledger {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  meter(circumstances: Circumstances): number {
    const { kind, resource, gpuTypeId, microUsdPerHour, gb, dataCenterId, templateId, imageName } = circumstances;
    const values = [resource, kind, gpuTypeId, microUsdPerHour, gb, dataCenterId, templateId, imageName];
    const names = "resource, kind, gpuTypeId, microUsdPerHour, gb, dataCenterId, templateId, imageName, borrowed";
    this.#sql.exec(`INSERT OR IGNORE INTO meters (${names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)`, ...values);
    const query = `SELECT key FROM meters WHERE (${names}) = (?, ?, ?, ?, ?, ?, ?, ?, 0)`;
    return this.#sql.exec<{ key: number }>(query, ...values).one().key;
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
    const { kind } = this.#describe(meter);
    for (const { hour, ms } of hoursOf(from, to)) {
      this.#sql.exec(
        `INSERT INTO usage (kind, hour, meter, worker, ms) VALUES (?, ?, ?, '', ?)
         ON CONFLICT DO UPDATE SET ms = ms + excluded.ms`,
        kind,
        hour,
        meter,
        ms,
      );
    }
  }

  /** What a queue reports are sums, which only grow: the larger is the later, and a report that comes twice adds nothing. */
  book(resource: string, executed: readonly ExecutedRow[]): void {
    for (const { meter, hour, worker, ms } of executed) {
      const { kind, resource: owner } = this.#describe(meter);
      if (owner !== resource) continue;
      this.#sql.exec(
        `INSERT INTO usage (kind, hour, meter, worker, ms) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET ms = MAX(ms, excluded.ms)`,
        kind,
        hour,
        meter,
        worker,
        ms,
      );
    }
  }

  #describe(meter: number) {
    const query = "SELECT kind, resource FROM meters WHERE key = ?";
    return this.#sql.exec<{ kind: Kind; resource: string }>(query, meter).one();
  }
}

export function nextFullHour(now: number): number {
  return (hourOf(now) + 1) * hourMs;
}
