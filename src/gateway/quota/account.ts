// What one account has used: the payer's own, or that of a token that narrows.
import { amountsOf, type Job } from "./job.ts";
import { Money, type MoneyJson } from "./money.ts";
import { dayOf, type Window, windowMs } from "./periods.ts";
import { type CounterJson, SlidingCounter } from "./sliding-counter.ts";

/** The payer's own account; a token's has the token's id. */
export const payersAccount = "";

export interface AccountJson {
  readonly windows: Readonly<Record<string, CounterJson>>;
  readonly money: MoneyJson;
  /** What of the money belongs to rows that are gone. */
  readonly pruned: MoneyJson;
}

export class Account {
  readonly #windows = new Map<string, SlidingCounter>();
  #money: Money;
  readonly #pruned: Money;

  constructor(json?: AccountJson) {
    for (const [key, counter] of Object.entries(json?.windows ?? {})) {
      this.#windows.set(key, SlidingCounter.read(windowMs[windowOf(key)], counter));
    }
    this.#money = new Money(json?.money);
    this.#pruned = new Money(json?.pruned);
  }

  get money(): Money {
    return this.#money;
  }

  json(now: number): AccountJson {
    const windows: Record<string, CounterJson> = {};
    for (const [key, counter] of this.#windows) if (counter.countAt(now) > 0) windows[key] = counter.json;
    return { windows, money: this.#money.json, pruned: this.#pruned.json };
  }

  /** Undefined where nothing was counted yet. */
  window(key: string): SlidingCounter | undefined {
    return this.#windows.get(key);
  }

  countRequest(keys: readonly string[], now: number): void {
    for (const key of keys) {
      const counter = this.#windows.get(key) ?? new SlidingCounter(windowMs[windowOf(key)]);
      counter.add(now);
      this.#windows.set(key, counter);
    }
  }

  count(job: Job, sign: 1 | -1): void {
    this.#money.count(paid(job), amountsOf(job), sign);
  }

  /** After a row's amounts have changed. */
  limitForgiven(job: Job): void {
    this.#money.limitForgiven(paid(job));
  }

  /** A row goes, what it counted for stays. */
  keepPruned(job: Job): void {
    this.#pruned.count(paid(job), amountsOf(job), 1);
  }

  /** The rules begin anew; what is reserved, and what was spent in truth, stays. */
  reset(now: number): void {
    this.#windows.clear();
    this.#money.forgive(now);
  }

  prune(today: number): void {
    this.#money.prune(today);
    this.#pruned.prune(today);
  }

  /** What the money is made of beside the rows that are there; from this day on, if that is earlier. */
  uncounted(from: number): Money {
    this.#pruned.goBackTo(Math.min(this.#money.from, from));
    return new Money(this.#pruned.json);
  }

  /** Takes what was counted anew; answers where it was something else. */
  replaceMoney(counted: Money): string[] {
    counted.carryForgiven(this.#money.json);
    const off = this.#money.differencesFrom(counted);
    this.#money = counted;
    return off;
  }
}

/** What a counter of requests is kept under: rules that differ in their limit alone share it. */
export function windowKey(per: Window, scope: string): string {
  return scope === "" ? per : `${per}:${scope}`;
}

function windowOf(key: string): Window {
  return key.split(":", 1)[0] as Window;
}

function paid({ admittedAt, model, kind }: Job) {
  return { day: dayOf(admittedAt), model, kind };
}
