// Money by account, day and model: what is known, what is assumed, what is reserved. The day is that of the admission.
import type { Kind } from "../../models/model.ts";

export interface Amounts {
  /** What answers said that jobs cost. */
  readonly known: number;
  /** What was charged where no answer said it. */
  readonly assumed: number;
  readonly reserved: number;
  /** What a reset took from the rules' sight; it was spent nevertheless. */
  readonly forgiven: number;
}

interface Row extends Amounts, Record<string, SqlStorageValue> {
  account: string;
  day: number;
  model: string;
  kind: Kind | "";
}

/** Where an amount belongs. */
export interface Entry {
  readonly account: string;
  readonly day: number;
  readonly model: string;
  readonly kind: Kind | undefined;
}

/** The payer's own account; a token that narrows has one beside it, under its id. */
export const payersAccount = "";
export type Covers = (model: string, kind: Kind | undefined) => boolean;

/** The longest month and the one before it, and what a week-old job may still correct. */
const keptDays = 70;
/** Tokens live a day, their jobs a week. */
const keptTokenDays = 9;

export class Spending {
  readonly #sql: SqlStorage;
  /** account → day → model. */
  readonly #rows = new Map<string, Map<number, Map<string, Row>>>();
  /** What rows that are gone held. */
  #earlier: { known: number; assumed: number };

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const row of sql.exec<Row>("SELECT * FROM spend")) this.#models(row.account, row.day).set(row.model, row);
    this.#earlier = sql.exec<{ known: number; assumed: number }>("SELECT known, assumed FROM earlier").one();
  }

  /** Adds to what is there. */
  add({ account, day, model, kind }: Entry, change: Partial<Amounts>): void {
    const models = this.#models(account, day);
    const row = models.get(model) ?? { account, day, model, kind: kind ?? "", ...nothing };
    const sums = sumOf(row, { ...nothing, ...change });
    const next = { ...row, ...sums, forgiven: Math.min(sums.forgiven, sums.known + sums.assumed) };
    models.set(model, next);
    this.#write(next);
  }

  /** What rules see of some days. */
  spent(account: string, days: { first: number; last: number }, covers: Covers): { used: number; reserved: number } {
    let [used, reserved] = [0, 0];
    for (const [day, models] of this.#rows.get(account) ?? []) {
      if (day < days.first || day > days.last) continue;
      for (const row of models.values()) {
        if (!covers(row.model, row.kind || undefined)) continue;
        used += row.known + row.assumed - row.forgiven + row.reserved;
        reserved += row.reserved;
      }
    }
    return { used, reserved };
  }

  /** All that a day's admissions took, whatever was forgiven: what the app's budget counts. */
  consumed(day: number): number {
    const models = this.#rows.get(payersAccount)?.get(day)?.values() ?? [];
    return [...models].reduce((sum, { known, assumed, reserved }) => sum + known + assumed + reserved, 0);
  }

  /** Since the meter's first job. */
  totals(): { known: number; assumed: number; reserved: number } {
    const rows = [...(this.#rows.get(payersAccount)?.values() ?? [])].flatMap((models) => [...models.values()]);
    return rows.reduce<Amounts>(sumOf, { ...nothing, ...this.#earlier });
  }

  /** The rules forget what this month's admissions spent so far; what is reserved stays so. */
  reset(days: { first: number; last: number }): void {
    for (const [day, models] of this.#rows.get(payersAccount) ?? []) {
      if (day < days.first || day > days.last) continue;
      for (const row of [...models.values()]) {
        const forgiven = row.known + row.assumed - row.forgiven;
        if (forgiven > 0) this.add({ ...row, kind: row.kind || undefined }, { forgiven });
      }
    }
  }

  prune(today: number): void {
    for (const [account, days] of this.#rows) {
      const kept = account === payersAccount ? keptDays : keptTokenDays;
      for (const [day, models] of days) {
        if (day >= today - kept) continue;
        const sums = [...models.values()].reduce<Amounts>(sumOf, nothing);
        if (sums.reserved > 0) continue;
        if (account === payersAccount) this.#keepEarlier(sums);
        this.#sql.exec("DELETE FROM spend WHERE account = ? AND day = ?", account, day);
        days.delete(day);
      }
      if (days.size === 0) this.#rows.delete(account);
    }
  }

  #keepEarlier({ known, assumed }: Amounts): void {
    this.#earlier = { known: this.#earlier.known + known, assumed: this.#earlier.assumed + assumed };
    this.#sql.exec("UPDATE earlier SET known = ?, assumed = ?", this.#earlier.known, this.#earlier.assumed);
  }

  #write({ account, day, model, kind, known, assumed, reserved, forgiven }: Row): void {
    this.#sql.exec(
      `INSERT OR REPLACE INTO spend (account, day, model, kind, known, assumed, reserved, forgiven)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[account, day, model, kind, known, assumed, reserved, forgiven],
    );
  }

  #models(account: string, day: number): Map<string, Row> {
    const days = this.#rows.get(account) ?? new Map<number, Map<string, Row>>();
    const models = days.get(day) ?? new Map<string, Row>();
    this.#rows.set(account, days.set(day, models));
    return models;
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
