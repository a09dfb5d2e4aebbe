// BUDGET: the ceiling of the whole app. Meters lease slices of it, so that they never promise more than it holds.

import { type Config, readConfig } from "../../config.ts";
import { CheckedObject } from "../../durable/checked-object.ts";
import { migrate } from "../../durable/migrate.ts";
import { requireAmounts } from "./amounts.ts";
import { dayMs, dayOf, daysOf, endOf, keptDays, type Period } from "./periods.ts";

const steps = [
  `CREATE TABLE days (
     day INTEGER PRIMARY KEY,
     allowed INTEGER NOT NULL CHECK (typeof(allowed) = 'integer' AND allowed >= 0),
     slack INTEGER NOT NULL CHECK (typeof(slack) = 'integer' AND slack >= 0)
   );
   CREATE TABLE leases (
     day INTEGER NOT NULL,
     meter TEXT NOT NULL,
     allowance INTEGER NOT NULL CHECK (typeof(allowance) = 'integer' AND allowance >= consumed),
     consumed INTEGER NOT NULL CHECK (typeof(consumed) = 'integer' AND consumed >= 0),
     PRIMARY KEY (day, meter)
   ) WITHOUT ROWID;
   CREATE TABLE settings (id INTEGER PRIMARY KEY CHECK (id = 1), json TEXT NOT NULL);`,
];

/** Micro-USD; null is no ceiling. */
export interface Ceilings {
  readonly dayMicroUsd: number | null;
  readonly monthMicroUsd: number | null;
}

export interface LeaseRequest {
  /** The meter's id: what it says replaces what it said before. */
  readonly meter: string;
  readonly day: number;
  /** All that the day's admissions took at this meter so far. */
  readonly consumedMicroUsd: number;
  /** What the next admission reserves, and what all that wait for this answer do. */
  readonly neededMicroUsd: number;
  readonly wantedMicroUsd: number;
}

export type LeaseAnswer =
  | { readonly granted: true; readonly allowanceMicroUsd: number | null; readonly leaseMs: number }
  | { readonly granted: false; readonly period: Period; readonly retryAfterSeconds: number };

export interface BudgetState {
  readonly ceilings: Ceilings;
  /** What admissions took, and what meters hold beyond that. */
  readonly day: { readonly consumedMicroUsd: number; readonly leasedMicroUsd: number; readonly endsAt: number };
  readonly month: { readonly consumedMicroUsd: number; readonly leasedMicroUsd: number; readonly endsAt: number };
}

/** A day that a recount found to be something else. */
export interface RecountedDay {
  readonly day: number;
  readonly wasMicroUsd: number;
  readonly isMicroUsd: number;
}

const leaseMs = 60_000;
const soonSeconds = 1;
/** A slice is for so many requests like this one, and never more than such a part of what is left. */
const requestsASlice = 20;
const partASlice = 1000;
/** Rows of days that are over are removed so many for each new one. */
const pruneBatch = 50;

export class Budget extends CheckedObject {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  readonly #sql: SqlStorage;
  readonly #configured: Ceilings;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    migrate(ctx.storage, steps);
    this.#configured = ceilingsOf(readConfig(env));
  }

  lease(request: LeaseRequest): LeaseAnswer {
    const { meter, day, consumedMicroUsd: consumed, neededMicroUsd, wantedMicroUsd } = request;
    requireAmounts(consumed, neededMicroUsd, wantedMicroUsd);
    return this.ctx.storage.transactionSync(() => {
      this.#hold(meter, day, consumed, consumed);
      const left = this.#left(day);
      if (left.microUsd < neededMicroUsd) return this.#refuse(left, day, neededMicroUsd);
      if (left.microUsd === Number.POSITIVE_INFINITY) return { granted: true, allowanceMicroUsd: null, leaseMs };
      const slice = Math.min(neededMicroUsd * requestsASlice, Math.floor(left.microUsd / partASlice));
      const granted = Math.min(left.microUsd, Math.max(neededMicroUsd, wantedMicroUsd, slice));
      this.#hold(meter, day, consumed + granted, consumed);
      return { granted: true, allowanceMicroUsd: consumed + granted, leaseMs };
    });
  }

  /** Gives back what is not used; says what became of days that are over. */
  report(meter: string, days: readonly { day: number; consumedMicroUsd: number }[]): void {
    requireAmounts(...days.map(({ consumedMicroUsd }) => consumedMicroUsd));
    this.ctx.storage.transactionSync(() => {
      for (const { day, consumedMicroUsd } of days) this.#hold(meter, day, consumedMicroUsd, consumedMicroUsd);
    });
  }

  state(): BudgetState {
    const now = this.clock();
    const sumOf = (period: Period) => {
      const { allowed, slack } = this.#sum(daysOf(period, now));
      return { consumedMicroUsd: allowed - slack, leasedMicroUsd: slack, endsAt: endOf(period, now) };
    };
    return { ceilings: this.#ceilings(), day: sumOf("day"), month: sumOf("month") };
  }

  /** Overrides the deployment's settings. Slices that are leased already stay valid until their lease ends. */
  setCeilings(ceilings: Ceilings): void {
    this.#sql.exec("INSERT OR REPLACE INTO settings (id, json) VALUES (1, ?)", JSON.stringify(ceilings));
  }

  #ceilings(): Ceilings {
    const row = this.#sql.exec<{ json: string }>("SELECT json FROM settings").toArray()[0];
    return row ? JSON.parse(row.json) : this.#configured;
  }

  #left(day: number): { microUsd: number; period: Period } {
    const { dayMicroUsd, monthMicroUsd } = this.#ceilings();
    const ofDay = room(dayMicroUsd, this.#sum({ first: day, last: day }));
    const ofMonth = room(monthMicroUsd, this.#sum(daysOf("month", day * dayMs)));
    return ofMonth < ofDay ? { microUsd: ofMonth, period: "month" } : { microUsd: ofDay, period: "day" };
  }

  /** Uses the day of the request: it may be past midnight here already. */
  #refuse({ microUsd, period }: { microUsd: number; period: Period }, day: number, needed: number): LeaseAnswer {
    const at = day * dayMs;
    const { slack } = this.#sum(daysOf(period, at));
    const comesBack = microUsd + slack >= needed;
    const waitMs = comesBack ? leaseMs : endOf(period, at) - this.clock();
    return { granted: false, period, retryAfterSeconds: Math.max(soonSeconds, Math.ceil(waitMs / 1000)) };
  }

  #sum({ first, last }: { first: number; last: number }): { allowed: number; slack: number } {
    const query = "SELECT SUM(allowed) AS allowed, SUM(slack) AS slack FROM days WHERE day BETWEEN ? AND ?";
    const sums = this.#sql.exec<{ allowed: number | null; slack: number | null }>(query, first, last).one();
    return { allowed: sums.allowed ?? 0, slack: sums.slack ?? 0 };
  }

  /**
   * Days made of what the meters said last; answers those that were something else. Earlier ones have no rows any more,
   * or not all of them.
   */
  recount(): RecountedDay[] {
    return this.ctx.storage.transactionSync(() => {
      const counts = "SELECT day, SUM(allowance) AS allowed, SUM(allowance - consumed) AS slack FROM leases";
      const counted = this.#sql.exec<DayRow>(`${counts} WHERE day >= ? GROUP BY day`, this.#firstKept()).toArray();
      const was = new Map(
        this.#sql
          .exec<DayRow>("SELECT * FROM days")
          .toArray()
          .map((row) => [row.day, row]),
      );
      const off = counted.filter(({ day, allowed, slack }) => {
        return was.get(day)?.allowed !== allowed || was.get(day)?.slack !== slack;
      });
      for (const { day, allowed, slack } of off) {
        this.#sql.exec("INSERT OR REPLACE INTO days (day, allowed, slack) VALUES (?, ?, ?)", day, allowed, slack);
      }
      return off.map((is) => ({ day: is.day, wasMicroUsd: consumedOf(was.get(is.day)), isMicroUsd: consumedOf(is) }));
    });
  }

  /**
   * Replaces what the meter held of the day; a report that comes twice changes nothing. One of a day whose rows are gone
   * is not taken: it would count all of the day again.
   */
  #hold(meter: string, day: number, allowance: number, consumed: number): void {
    if (day < this.#firstKept()) return;
    const query = "SELECT allowance, consumed FROM leases WHERE day = ? AND meter = ?";
    const before = this.#sql.exec<{ allowance: number; consumed: number }>(query, day, meter).toArray()[0];
    const allowed = allowance - (before?.allowance ?? 0);
    const slack = allowance - consumed - ((before?.allowance ?? 0) - (before?.consumed ?? 0));
    if (!before) this.#prune();
    this.#sql.exec("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", day, meter, allowance, consumed);
    this.#sql.exec("INSERT INTO days VALUES (?, 0, 0) ON CONFLICT DO NOTHING", day);
    this.#sql.exec("UPDATE days SET allowed = allowed + ?, slack = slack + ? WHERE day = ?", allowed, slack, day);
  }

  /** A few at a time: a day has as many rows as meters, and a caller waits. */
  #prune(): void {
    const over = "SELECT day, meter FROM leases WHERE day < ? LIMIT ?";
    this.#sql.exec(`DELETE FROM leases WHERE (day, meter) IN (${over})`, this.#firstKept(), pruneBatch);
  }

  #firstKept(): number {
    return dayOf(this.clock()) - keptDays;
  }
}

interface DayRow extends Record<string, SqlStorageValue> {
  day: number;
  allowed: number;
  slack: number;
}

function consumedOf(row: DayRow | undefined): number {
  return row ? row.allowed - row.slack : 0;
}

function room(ceiling: number | null, { allowed }: { allowed: number }): number {
  return ceiling === null ? Number.POSITIVE_INFINITY : ceiling - allowed;
}

function ceilingsOf(reading: { ok: true; config: Config } | { ok: false }): Ceilings {
  const budget = reading.ok ? reading.config.budget : undefined;
  return { dayMicroUsd: budget?.dayMicroUsd ?? null, monthMicroUsd: budget?.monthMicroUsd ?? null };
}

/** The only one of its kind. */
export const budgetName = "budget";
