// BUDGET: the ceiling of the whole app. Meters lease slices of it, so that they never promise more than it holds.
import { DurableObject } from "cloudflare:workers";
import { type Config, readConfig } from "../../config.ts";
import { migrate } from "../../wire/migrate.ts";
import { dayMs, daysOf, endOf, type Period } from "./periods.ts";

const steps = [
  `CREATE TABLE days (day INTEGER PRIMARY KEY, allowed INTEGER NOT NULL, slack INTEGER NOT NULL);
   CREATE TABLE leases (
     day INTEGER NOT NULL, meter TEXT NOT NULL, allowance INTEGER NOT NULL, consumed INTEGER NOT NULL,
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

const leaseMs = 60_000;
/** A slice is for so many requests like this one, and never more than such a part of what is left. */
const requestsASlice = 20;
const partASlice = 1000;
/** Meters correct a day as long as its jobs may end. */
const keptDays = 9;

export class Budget extends DurableObject<Env> {
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
    const now = this.clock();
    const { meter, day, consumedMicroUsd: consumed, neededMicroUsd, wantedMicroUsd } = request;
    return this.ctx.storage.transactionSync(() => {
      this.#hold(meter, day, consumed, consumed);
      const left = this.#left(day);
      if (left.microUsd < neededMicroUsd) return this.#refuse(left, neededMicroUsd, now);
      if (left.microUsd === Number.POSITIVE_INFINITY) return { granted: true, allowanceMicroUsd: null, leaseMs };
      const slice = Math.min(neededMicroUsd * requestsASlice, Math.floor(left.microUsd / partASlice));
      const granted = Math.min(left.microUsd, Math.max(neededMicroUsd, wantedMicroUsd, slice));
      this.#hold(meter, day, consumed + granted, consumed);
      return { granted: true, allowanceMicroUsd: consumed + granted, leaseMs };
    });
  }

  /** Gives back what is not used; says what became of days that are over. */
  report(meter: string, days: readonly { day: number; consumedMicroUsd: number }[]): void {
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

  /** Goes before the deployment's settings. Slices that are out stay good until their lease ends. */
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

  #refuse({ microUsd, period }: { microUsd: number; period: Period }, needed: number, now: number): LeaseAnswer {
    const { slack } = this.#sum(daysOf(period, now));
    const comesBack = microUsd + slack >= needed;
    const waitMs = comesBack ? leaseMs : endOf(period, now) - now;
    return { granted: false, period, retryAfterSeconds: Math.ceil(waitMs / 1000) };
  }

  #sum({ first, last }: { first: number; last: number }): { allowed: number; slack: number } {
    const query = "SELECT SUM(allowed) AS allowed, SUM(slack) AS slack FROM days WHERE day BETWEEN ? AND ?";
    const sums = this.#sql.exec<{ allowed: number | null; slack: number | null }>(query, first, last).one();
    return { allowed: sums.allowed ?? 0, slack: sums.slack ?? 0 };
  }

  /** Replaces what the meter held of the day; a report that comes twice changes nothing. */
  #hold(meter: string, day: number, allowance: number, consumed: number): void {
    const query = "SELECT allowance, consumed FROM leases WHERE day = ? AND meter = ?";
    const before = this.#sql.exec<{ allowance: number; consumed: number }>(query, day, meter).toArray()[0];
    const allowed = allowance - (before?.allowance ?? 0);
    const slack = allowance - consumed - ((before?.allowance ?? 0) - (before?.consumed ?? 0));
    if (!before) this.#prune(day);
    this.#sql.exec("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", day, meter, allowance, consumed);
    this.#sql.exec(
      `INSERT INTO days VALUES (?1, ?2, ?3)
       ON CONFLICT (day) DO UPDATE SET allowed = allowed + ?2, slack = slack + ?3`,
      ...[day, allowed, slack],
    );
  }

  #prune(day: number): void {
    this.#sql.exec("DELETE FROM leases WHERE day < ?", day - keptDays);
  }
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
