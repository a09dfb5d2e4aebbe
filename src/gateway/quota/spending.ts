// Money by account, day and model: what is known, what is assumed, what is reserved. The day is that of the admission.
import type { Kind } from "../../models/model.ts";
import { dayMs, dayOf, type Period, startOf } from "./periods.ts";

export interface Amounts {
  /** What answers said that jobs cost. */
  readonly known: number;
  /** What was charged where no answer said it. */
  readonly assumed: number;
  readonly reserved: number;
  /** What a reset took from the rules' sight; it was spent nevertheless. */
  readonly forgiven: number;
}

/** Where an amount belongs. */
export interface Entry {
  readonly account: string;
  readonly day: number;
  readonly model: string;
  readonly kind: Kind | "";
}
interface Row extends Entry, Amounts, Record<string, SqlStorageValue> {}

/** The payer's own account; a token that narrows has one beside it, under its id. */
export const payersAccount = "";
export type Covers = (model: string, kind: Kind | undefined) => boolean;
export type Span = Period | "ever";

/** The longest month and the one before it, and what a week-old job may still correct. */
const keptDays = 70;
/** Tokens live a day, their jobs a week. */
const keptTokenDays = 9;
const spans: readonly Span[] = ["day", "month", "ever"];

export class Spending {
  readonly #sql: SqlStorage;
  #rows = new Map<string, Row>();
  readonly #unwritten = new Set<string>();
  /** Sums by model of each span of each account, so that no rule adds up days. */
  #sums = new Map<string, Map<string, Amounts & { kind: Kind | "" }>>();
  /** What rows that are gone held. */
  #earlier = nothing;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#load();
  }

  #load(): void {
    this.#rows = new Map();
    this.#sums = new Map();
    for (const row of this.#sql.exec<Row>("SELECT * FROM spend")) {
      this.#rows.set(rowKey(row), row);
      this.#sumUp(row, row);
    }
    const earlier = this.#sql.exec<{ known: number; assumed: number }>("SELECT known, assumed FROM earlier").one();
    this.#earlier = { ...nothing, ...earlier };
  }

  /** Adds to what is there. */
  add(entry: Entry, change: Partial<Amounts>): void {
    const row = this.#rows.get(rowKey(entry)) ?? { ...entry, ...nothing };
    const sums = sumOf(row, { ...nothing, ...change });
    const forgiven = Math.min(sums.forgiven, sums.known + sums.assumed);
    const next: Row = { ...row, ...sums, forgiven };
    this.#rows.set(rowKey(next), next);
    this.#unwritten.add(rowKey(next));
    this.#sumUp(entry, { ...nothing, ...change, forgiven: forgiven - row.forgiven });
  }

  write(): void {
    for (const key of this.#unwritten) {
      const row = this.#rows.get(key);
      if (!row) continue;
      const { account, day, model, kind, known, assumed, reserved, forgiven } = row;
      this.#sql.exec(
        `INSERT OR REPLACE INTO spend (account, day, model, kind, known, assumed, reserved, forgiven)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        ...[account, day, model, kind, known, assumed, reserved, forgiven],
      );
    }
    this.#unwritten.clear();
  }

  #sumUp({ account, day, model, kind }: Entry, change: Amounts): void {
    for (const span of spans) {
      const key = sumKey(account, span, day * dayMs);
      const models = this.#sums.get(key) ?? new Map<string, Amounts & { kind: Kind | "" }>();
      this.#sums.set(key, models.set(model, { kind, ...sumOf(models.get(model) ?? nothing, change) }));
    }
  }

  /** What rules see of the span that the moment lies in. */
  spent(account: string, span: Span, at: number, covers: Covers): { used: number; reserved: number } {
    let [used, reserved] = [0, 0];
    for (const [model, sums] of this.#sums.get(sumKey(account, span, at)) ?? []) {
      if (!covers(model, sums.kind || undefined)) continue;
      used += sums.known + sums.assumed - sums.forgiven + sums.reserved;
      reserved += sums.reserved;
    }
    return { used, reserved };
  }

  /** All that a day's admissions took, whatever was forgiven: what the app's budget counts. */
  consumed(day: number): number {
    let consumed = 0;
    for (const { known, assumed, reserved } of this.#sums.get(sumKey(payersAccount, "day", day * dayMs))?.values() ??
      [])
      consumed += known + assumed + reserved;
    return consumed;
  }

  /** Since the meter's first job. */
  totals(): Amounts {
    const models = this.#sums.get(sumKey(payersAccount, "ever", 0))?.values() ?? [];
    return [...models].reduce<Amounts>(sumOf, this.#earlier);
  }

  /** The rules forget what this month's admissions spent so far; what is reserved stays so. */
  reset(now: number): void {
    const first = dayOf(startOf("month", now));
    for (const row of [...this.#rows.values()]) {
      const forgiven = row.known + row.assumed - row.forgiven;
      if (row.account === payersAccount && row.day >= first && forgiven > 0) this.add(row, { forgiven });
    }
  }

  prune(today: number): void {
    const gone = this.#sql.exec<Row>(
      "DELETE FROM spend WHERE reserved = 0 AND day < ? AND (account <> ? OR day < ?) RETURNING *",
      ...[today - keptTokenDays, payersAccount, today - keptDays],
    );
    const rows = gone.toArray();
    if (rows.length === 0) return;
    const { known, assumed } = rows.filter(({ account }) => account === payersAccount).reduce(sumOf, this.#earlier);
    this.#sql.exec("UPDATE earlier SET known = ?, assumed = ?", known, assumed);
    this.#load();
  }
}

const nothing: Amounts = { known: 0, assumed: 0, reserved: 0, forgiven: 0 };

function sumOf(left: Amounts, right: Amounts): Amounts {
  return {
    known: left.known + right.known,
    assumed: left.assumed + right.assumed,
    reserved: left.reserved + right.reserved,
    forgiven: left.forgiven + right.forgiven,
  };
}

/** A day and a model's name hold no space; what an account is called comes last. */
function rowKey({ account, day, model }: Entry): string {
  return `${day} ${model} ${account}`;
}

function sumKey(account: string, span: Span, at: number): string {
  return `${span} ${span === "ever" ? 0 : startOf(span, at)} ${account}`;
}
