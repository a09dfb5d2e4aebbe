// How long jobs of a managed endpoint ran, by hour and worker: summed at each job's end, reported to the account later.
import { limits } from "../../contract/limits.ts";
import { hourMs, hourOf, hoursOf } from "../hours.ts";
import type { JobEvent } from "./job.ts";

export interface ExecutedRow extends Record<string, SqlStorageValue> {
  meter: number;
  hour: number;
  worker: string;
  ms: number;
}

/** The events that end a billed run. A run that its worker left or lost is not billed. */
const ends: ReadonlySet<JobEvent> = new Set([
  "completed",
  "failed",
  "overran",
  "cancelled",
  "abandoned",
  "expired",
] satisfies JobEvent[]);
/** Ends that come close together are reported together. */
const tellAfterMs = 5000;
const rowsAtOnce = 1000;
/** No run that ends from now on began so many hours ago, and a day more: a sum that was told does not grow any more. */
const keptHours = Math.ceil(limits.ttlMs.max / hourMs) + 24;

export class Executed {
  readonly #sql: SqlStorage;
  /** The meter that run time is booked on now; undefined for an endpoint without one. */
  readonly #meter: () => number | undefined;
  /** While a report is under way the next one is due then. */
  #againAt: number | undefined;
  /** In which hour old rows were looked for. */
  #forgotIn: number | undefined;

  constructor(sql: SqlStorage, meter: () => number | undefined) {
    this.#sql = sql;
    this.#meter = meter;
  }

  /** The caller runs it inside the transaction of the move. */
  add(event: JobEvent, worker: string | null, from: number | null, to: number): void {
    const meter = this.#meter();
    if (meter === undefined || from === null || !ends.has(event)) return;
    for (const { hour, ms } of hoursOf(from, to)) {
      this.#sql.exec(
        `INSERT INTO executed (meter, hour, worker, ms, tellAt) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET ms = ms + excluded.ms, tellAt = COALESCE(tellAt, excluded.tellAt)`,
        meter,
        hour,
        worker ?? "",
        ms,
        to + tellAfterMs,
      );
    }
  }

  nextDue(): number | undefined {
    const at = this.#sql.exec<{ at: number | null }>("SELECT MIN(tellAt) AS at FROM executed").one().at ?? undefined;
    return at !== undefined && this.#againAt !== undefined ? Math.max(at, this.#againAt) : at;
  }

  /** Reports the sums that changed, once the first of them is due. A sum that arrives twice counts once. */
  async report(now: number, send: (rows: readonly ExecutedRow[]) => Promise<void>): Promise<void> {
    const due = this.nextDue();
    if (due === undefined || due > now) return;
    const isUnderWay = this.#againAt !== undefined;
    this.#againAt = now + tellAfterMs;
    if (isUnderWay) return;
    const rows = this.#untold(rowsAtOnce);
    try {
      await send(rows);
      this.#told(rows);
      this.#forget(hourOf(now));
    } catch {
      this.#sql.exec("UPDATE executed SET tellAt = ? WHERE tellAt IS NOT NULL", now + tellAfterMs);
    } finally {
      this.#againAt = undefined;
    }
  }

  untold(): ExecutedRow[] {
    return this.#untold(-1);
  }

  #untold(most: number): ExecutedRow[] {
    const query = "SELECT meter, hour, worker, ms FROM executed WHERE tellAt IS NOT NULL LIMIT ?";
    return this.#sql.exec<ExecutedRow>(query, most).toArray();
  }

  /** Marks rows as reported, unless they have grown since. */
  #told(rows: readonly ExecutedRow[]): void {
    for (const { meter, hour, worker, ms } of rows) {
      const query = "UPDATE executed SET tellAt = NULL WHERE meter = ? AND hour = ? AND worker = ? AND ms = ?";
      this.#sql.exec(query, meter, hour, worker, ms);
    }
  }

  /** Once an hour, since it reads all rows. */
  #forget(hour: number): void {
    if (this.#forgotIn === hour) return;
    this.#forgotIn = hour;
    this.#sql.exec("DELETE FROM executed WHERE tellAt IS NULL AND hour < ?", hour - keptHours);
  }
}
