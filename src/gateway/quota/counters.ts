// All that rules are held against, in memory: requests, money and concurrent jobs, each made of rows and of nothing else.
import type { Kind } from "../../models/model.ts";
import { Account, type AccountJson, payersAccount } from "./account.ts";
import { amountsOf, type Job } from "./job.ts";
import { type Covers, Money } from "./money.ts";
import { dayMs, dayOf } from "./periods.ts";
import type { Tables } from "./tables.ts";

/** A token does not outlive a day. */
const keptTokenMs = 2 * dayMs;
/** Tokens that were read stay in memory until there are so many. */
const tokensInMemory = 200;

interface TokenAccount {
  readonly account: Account;
  /** Admissions before this one are of a time that was forgotten. */
  readonly sinceTurn: number;
  until: number;
  /** SQL does not know all of it. */
  changed: boolean;
}

type TokenJson = AccountJson & Pick<TokenAccount, "sinceTurn">;

export class Counters {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;
  readonly payer: Account;
  readonly #tokens = new Map<string, TokenAccount>();
  /** account → model → how many of its jobs take a place. */
  readonly #places = new Map<string, Map<string, { kind: Kind | ""; count: number }>>();

  constructor(sql: SqlStorage, tables: Tables, payer: AccountJson | undefined) {
    this.#sql = sql;
    this.#tables = tables;
    this.payer = new Account(payer);
  }

  /** Undefined where a token has used nothing yet, or was forgotten. */
  account(id: string): Account | undefined {
    return id === payersAccount ? this.payer : this.#token(id)?.account;
  }

  #token(id: string): TokenAccount | undefined {
    const known = this.#tokens.get(id);
    if (known || !this.#tables.has("accounts")) return known;
    const query = "SELECT json, until FROM accounts WHERE id = ?";
    const row = this.#sql.exec<{ json: string; until: number }>(query, id).toArray()[0];
    if (!row) return undefined;
    const { sinceTurn, ...json } = JSON.parse(row.json) as TokenJson;
    const read = { account: new Account(json), sinceTurn, until: row.until, changed: false };
    this.#tokens.set(id, read);
    return read;
  }

  /** How many concurrent jobs the account has of the models that a rule covers. */
  places(account: string, covers: Covers): number {
    let count = 0;
    for (const [model, places] of this.#places.get(account) ?? []) {
      if (covers(model, places.kind || undefined)) count += places.count;
    }
    return count;
  }

  /** A new admission, or one that SQL's counters have not seen. */
  admit(job: Job): void {
    const { account, admittedAt } = job;
    const [payers, tokens] = readKeys(job.counters);
    if (account !== payersAccount) {
      this.#openToken(account, job.turn, admittedAt);
      this.#countRequest(account, tokens, admittedAt);
    }
    this.#countRequest(payersAccount, payers, admittedAt);
    this.count(job, 1);
  }

  /** A request that is no job. */
  countHit(account: string, counters: string, turn: number, now: number): void {
    const [payers, tokens] = readKeys(counters);
    this.#countRequest(payersAccount, payers, now);
    if (account === payersAccount) return;
    this.#openToken(account, turn, now);
    this.#countRequest(account, tokens, now);
  }

  #openToken(id: string, sinceTurn: number, now: number): void {
    const token = this.#token(id) ?? { account: new Account(), sinceTurn, until: 0, changed: true };
    token.until = Math.max(token.until, now + keptTokenMs);
    this.#tokens.set(id, token);
  }

  #countRequest(id: string, keys: readonly string[], now: number): void {
    this.account(id)?.countRequest(keys, now);
    const token = this.#tokens.get(id);
    if (token) token.changed = true;
  }

  /** Counts a row; with the sign -1 it is taken back. */
  count(job: Job, sign: 1 | -1): void {
    this.payer.count(job, sign);
    this.countPlace(job, sign);
    if (job.account === payersAccount) return;
    const token = this.#tokenOf(job);
    if (!token) return;
    token.account.count(job, sign);
    token.changed = true;
  }

  /** What a row counts for changes. */
  change(job: Job, apply: () => void): void {
    this.count(job, -1);
    apply();
    this.count(job, 1);
    this.#limitForgiven(job);
  }

  /** A row goes, and with it what it counted for. */
  takeBack(job: Job): void {
    this.count(job, -1);
    this.#limitForgiven(job);
  }

  #limitForgiven(job: Job): void {
    this.payer.limitForgiven(job);
    if (job.account !== payersAccount) this.#tokenOf(job)?.account.limitForgiven(job);
  }

  #tokenOf({ account, turn }: Job): TokenAccount | undefined {
    const token = this.#token(account);
    return token && turn >= token.sinceTurn ? token : undefined;
  }

  /** A token's job is one of its payer's too. */
  countPlace(job: Job, sign: 1 | -1): void {
    if (job.endedAt !== null || job.place === 0) return;
    this.#countPlaceOf(payersAccount, job, sign);
    if (job.account !== payersAccount) this.#countPlaceOf(job.account, job, sign);
  }

  #countPlaceOf(account: string, { model, kind }: Job, by: number): void {
    const models = this.#places.get(account) ?? new Map<string, { kind: Kind | ""; count: number }>();
    const count = (models.get(model)?.count ?? 0) + by;
    if (count > 0) models.set(model, { kind, count });
    else models.delete(model);
    if (models.size > 0) this.#places.set(account, models);
    else this.#places.delete(account);
  }

  keepPruned(job: Job): void {
    this.payer.keepPruned(job);
    if (job.account === payersAccount) return;
    const token = this.#tokenOf(job);
    if (!token) return;
    token.account.keepPruned(job);
    token.changed = true;
  }

  /** What the payer's state does not hold goes to rows of its own. */
  writeTokens(now: number): void {
    for (const [id, token] of this.#tokens) {
      if (!token.changed) continue;
      this.#tables.need("accounts");
      const json = JSON.stringify({ sinceTurn: token.sinceTurn, ...token.account.json(now) } satisfies TokenJson);
      this.#sql.exec("INSERT OR REPLACE INTO accounts (id, json, until) VALUES (?, ?, ?)", id, json, token.until);
      token.changed = false;
    }
    if (this.#tokens.size > tokensInMemory) this.#tokens.clear();
  }

  /** All that day's admissions took: what the app's budget counts. */
  consumed(day: number): number {
    const { known, assumed, reserved } = this.payer.money.amounts("day", day * dayMs);
    return known + assumed + reserved;
  }

  prune(now: number): void {
    this.payer.prune(dayOf(now));
    if (!this.#tables.has("accounts")) return;
    for (const { id } of this.#sql.exec<{ id: string }>("DELETE FROM accounts WHERE until <= ? RETURNING id", now)) {
      this.#tokens.delete(id);
    }
  }

  /** What money and places must be by the rows, from this day on; and which of them were something else. */
  recount(jobs: Iterable<Job>, from = Number.POSITIVE_INFINITY): readonly string[] {
    const accounts = new Map([[payersAccount, this.payer]]);
    for (const id of this.#tokenIds()) {
      const token = this.#token(id);
      if (token) accounts.set(id, token.account);
    }
    const counted = new Map([...accounts].map(([id, account]) => [id, account.uncounted(from)]));
    const placesBefore = JSON.stringify(sortedPlaces(this.#places));
    this.#places.clear();
    for (const job of jobs) {
      const paid = { day: dayOf(job.admittedAt), model: job.model, kind: job.kind };
      counted.get(payersAccount)?.count(paid, amountsOf(job), 1);
      if (job.account !== payersAccount && this.#tokenOf(job)) counted.get(job.account)?.count(paid, amountsOf(job), 1);
      this.countPlace(job, 1);
    }
    const off = [...accounts].flatMap(([id, account]) => {
      return account.replaceMoney(counted.get(id) ?? new Money()).map((span) => `${id} ${span}`.trim());
    });
    for (const token of this.#tokens.values()) token.changed = true;
    return placesBefore === JSON.stringify(sortedPlaces(this.#places)) ? off : [...off, "jobs"];
  }

  #tokenIds(): Set<string> {
    const query = "SELECT id FROM accounts";
    const stored = this.#tables.has("accounts") ? this.#sql.exec<{ id: string }>(query).toArray() : [];
    return new Set([...stored.map(({ id }) => id), ...this.#tokens.keys()]);
  }
}

function sortedPlaces(places: ReadonlyMap<string, ReadonlyMap<string, { readonly count: number }>>): string[] {
  const counts = [...places].flatMap(([account, models]) =>
    [...models].map(([model, { count }]) => `${account} ${model} ${count}`),
  );
  return counts.sort();
}

/** Counters as a row names them: the payer's, then the token's. */
export function writeKeys(payers: readonly string[], tokens: readonly string[]): string {
  return tokens.length === 0 ? payers.join(" ") : `${payers.join(" ")}|${tokens.join(" ")}`;
}

function readKeys(counters: string): [payers: string[], tokens: string[]] {
  const [payers = "", tokens = ""] = counters.split("|");
  return [payers === "" ? [] : payers.split(" "), tokens === "" ? [] : tokens.split(" ")];
}
