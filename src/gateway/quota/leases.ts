// The meter's side of the app's budget: what it may still admit on each day, and which days it must report.
import { keptDays } from "./periods.ts";

export interface Lease {
  readonly day: number;
  /** What the day's admissions may take in all; null where there is no ceiling. */
  readonly allowance: number | null;
  /** Until when the allowance counts, and when the report is due. */
  readonly until: number;
}

/** What changes after the report waits so long for the next. */
const reportAfterMs = 60_000;

export class Leases {
  readonly #days = new Map<number, Lease>();

  constructor(leases: readonly Lease[] = []) {
    for (const lease of leases) this.#days.set(lease.day, lease);
  }

  get json(): readonly Lease[] {
    return [...this.#days.values()];
  }

  covers(day: number, consumed: number, needed: number, now: number): boolean {
    const lease = this.#days.get(day);
    if (!lease || isOver(lease, now)) return false;
    return lease.allowance === null || consumed + needed <= lease.allowance;
  }

  grant(day: number, allowance: number | null, until: number): void {
    this.#days.set(day, { day, allowance, until });
  }

  /** The day's money changed after its last report. */
  scheduleReport(day: number, now: number): void {
    if (!this.#days.has(day)) this.postpone(day, now + reportAfterMs);
  }

  /** Ends the day's slice, so that nothing more is admitted on it, and makes its report due at `until`. */
  postpone(day: number, until: number): void {
    this.#days.set(day, { day, allowance: 0, until });
  }

  /** Days that are to be reported; the slices that were leased for them are given back so. */
  due(now: number): number[] {
    return [...this.#days.values()].filter((lease) => isOver(lease, now)).map(({ day }) => day);
  }

  reported(day: number): void {
    this.#days.delete(day);
  }

  nextDue(): number | undefined {
    let next: number | undefined;
    for (const { until } of this.#days.values()) if (until < (next ?? Infinity)) next = until;
    return next;
  }

  prune(today: number): void {
    for (const day of this.#days.keys()) if (day < today - keptDays) this.#days.delete(day);
  }
}

/** Also where it was written while the clock ran ahead. */
function isOver({ until }: Lease, now: number): boolean {
  return until <= now || until > now + reportAfterMs;
}
