// An account's money by day, by month and in all, each by model. An amount belongs to the day of its admission.
import type { Kind } from "../../models/model.ts";
import type { Amounts } from "./job.ts";
import { dayMs, dayOf, keptDays, type Period, startOf } from "./periods.ts";

export type Covers = (model: string, kind: Kind | undefined) => boolean;
export type Span = Period | "ever";

/** What a model's jobs took in a span. */
interface Entry {
  readonly kind: Kind | "";
  known: number;
  assumed: number;
  reserved: number;
  /** What a reset took from the rules' sight; it was spent nevertheless. */
  forgiven: number;
}
type EntryJson = [kind: Kind | "", known: number, assumed: number, reserved: number, forgiven: number];

export interface MoneyJson {
  readonly from: number;
  readonly spans: Readonly<Record<string, Readonly<Record<string, EntryJson>>>>;
}

export interface Paid {
  readonly day: number;
  readonly model: string;
  readonly kind: Kind | "";
}

/** So that the month before this one can still be read. */
const keptMonthDays = 31;

export class Money {
  /** Earlier days are told apart no more, and earlier months. */
  #from: number;
  #monthsFrom: number;
  readonly #spans = new Map<string, Map<string, Entry>>();

  constructor({ from, spans }: MoneyJson = { from: 0, spans: {} }) {
    this.#from = from;
    this.#monthsFrom = firstOfMonth(from - keptMonthDays);
    for (const [span, models] of Object.entries(spans)) {
      const entries = Object.entries(models).map(([model, [kind, known, assumed, reserved, forgiven]]) => {
        return [model, { kind, known, assumed, reserved, forgiven }] as const;
      });
      this.#spans.set(span, new Map(entries));
    }
  }

  get from(): number {
    return this.#from;
  }

  get json(): MoneyJson {
    const models = (entries: Map<string, Entry>) =>
      Object.fromEntries(
        [...entries].map(([model, { kind, known, assumed, reserved, forgiven }]): [string, EntryJson] => {
          return [model, [kind, known, assumed, reserved, forgiven]];
        }),
      );
    return { from: this.#from, spans: Object.fromEntries([...this.#spans].map(([at, of]) => [at, models(of)])) };
  }

  /** Adds what a row counts for, or takes it back by a sign of -1. */
  count({ day, model, kind }: Paid, { known, assumed, reserved }: Amounts, sign: 1 | -1): void {
    if (known === 0 && assumed === 0 && reserved === 0) return;
    for (const span of this.#spansOf(day)) {
      const models = this.#spans.get(span) ?? new Map<string, Entry>();
      const entry = models.get(model) ?? { kind, known: 0, assumed: 0, reserved: 0, forgiven: 0 };
      entry.known += sign * known;
      entry.assumed += sign * assumed;
      entry.reserved += sign * reserved;
      this.#spans.set(span, models.set(model, entry));
    }
  }

  #spansOf(day: number): string[] {
    const spans = ["ever"];
    if (day >= this.#from) spans.push(spanKey("day", day * dayMs));
    if (day >= this.#monthsFrom) spans.push(spanKey("month", day * dayMs));
    return spans;
  }

  /** What rules see of the span that the moment lies in. */
  spent(span: Span, at: number, covers: Covers): { used: number; reserved: number } {
    let [used, reserved] = [0, 0];
    for (const [model, entry] of this.#spans.get(spanKey(span, at)) ?? []) {
      if (!covers(model, entry.kind || undefined)) continue;
      used += Math.max(0, entry.known + entry.assumed - entry.forgiven) + entry.reserved;
      reserved += entry.reserved;
    }
    return { used, reserved };
  }

  /** All that the span's admissions took, whatever was forgiven. */
  amounts(span: Span, at: number): Amounts {
    let [known, assumed, reserved] = [0, 0, 0];
    for (const entry of this.#spans.get(spanKey(span, at))?.values() ?? []) {
      known += entry.known;
      assumed += entry.assumed;
      reserved += entry.reserved;
    }
    return { known, assumed, reserved };
  }

  /** The rules forget what this month's admissions spent so far; what is reserved stays so. */
  forgive(now: number): void {
    const first = dayOf(startOf("month", now));
    for (const [span, models] of this.#spans) {
      const [kind, at] = readSpan(span);
      if (kind === "ever" || at < first) continue;
      for (const entry of models.values()) entry.forgiven = entry.known + entry.assumed;
    }
  }

  /** No more is forgiven than was spent: else what a correction takes back would be free to spend again. */
  limitForgiven({ day, model }: Paid): void {
    for (const span of this.#spansOf(day)) {
      const entry = this.#spans.get(span)?.get(model);
      if (entry) entry.forgiven = Math.min(entry.forgiven, entry.known + entry.assumed);
    }
  }

  /** What was forgiven is nowhere but here: who counts anew carries it over. */
  carryForgiven({ spans }: MoneyJson): void {
    for (const [span, models] of Object.entries(spans)) {
      for (const [model, [, , , , forgiven]] of Object.entries(models)) {
        const entry = this.#spans.get(span)?.get(model);
        if (entry) entry.forgiven = Math.min(forgiven, entry.known + entry.assumed);
      }
    }
  }

  /** The spans and models whose amounts are others. */
  differencesFrom(other: Money): string[] {
    const own = this.#amountsBySpan();
    const others = other.#amountsBySpan();
    return [...new Set([...own.keys(), ...others.keys()])].filter((key) => own.get(key) !== others.get(key));
  }

  #amountsBySpan(): Map<string, string> {
    const amounts = new Map<string, string>();
    for (const [span, models] of this.#spans) {
      for (const [model, { known, assumed, reserved }] of models) {
        if (known !== 0 || assumed !== 0 || reserved !== 0)
          amounts.set(`${span} ${model}`, `${known} ${assumed} ${reserved}`);
      }
    }
    return amounts;
  }

  /** The clock was set back: days from this one on are told apart again. */
  goBackTo(day: number): void {
    if (day >= this.#from) return;
    this.#from = day;
    this.#monthsFrom = firstOfMonth(day - keptMonthDays);
  }

  prune(today: number): void {
    if (today - keptDays <= this.#from) return;
    this.#from = today - keptDays;
    this.#monthsFrom = firstOfMonth(this.#from - keptMonthDays);
    for (const span of this.#spans.keys()) {
      const [kind, day] = readSpan(span);
      const isOld = (kind === "day" && day < this.#from) || (kind === "month" && day < this.#monthsFrom);
      if (isOld) this.#spans.delete(span);
    }
  }
}

const firstOfMonth = (day: number) => dayOf(startOf("month", day * dayMs));

function spanKey(span: Span, at: number): string {
  return span === "ever" ? span : `${span} ${dayOf(startOf(span, at))}`;
}

function readSpan(key: string): [span: string, firstDay: number] {
  const [span = "", day] = key.split(" ");
  return [span, Number(day)];
}
