// The tables of a payer's meter, version 1. Two are made with its first row, each other one when it is first needed.
import { endedTable, openTable } from "./job-rows.ts";

/** `state` holds one row, `jobs` a row for each open job, and for each that ended since the last transaction. */
const atBirth = `
  CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), json TEXT NOT NULL);
  ${openTable};`;

const whenNeeded = {
  ended: endedTable,
  /** What tokens that narrow have used, each on its own. */
  accounts: "CREATE TABLE accounts (id TEXT PRIMARY KEY, json TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID",
  idempotency: `
    CREATE TABLE idempotency (
      owner TEXT NOT NULL,
      key TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      digest TEXT,
      admission TEXT NOT NULL,
      upstreamId TEXT,
      expiresAt INTEGER NOT NULL,
      PRIMARY KEY (owner, key)
    ) WITHOUT ROWID;
    CREATE INDEX idempotency_expiry ON idempotency (expiresAt)`,
  outbox: `
    CREATE TABLE outbox (
      admission TEXT PRIMARY KEY,
      url TEXT NOT NULL,
      tries INTEGER NOT NULL,
      dueAt INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX outbox_due ON outbox (dueAt);
    CREATE TABLE outbox_bodies (
      admission TEXT NOT NULL,
      part INTEGER NOT NULL,
      bytes BLOB NOT NULL,
      PRIMARY KEY (admission, part)
    )`,
  /** What 0.1.0 made has no such column. */
  outbox_begun: "ALTER TABLE outbox ADD COLUMN begun INTEGER NOT NULL DEFAULT 0",
  /** With the bodies of the results that KV has not taken. */
  debts: `
    CREATE TABLE debts (
      admission TEXT NOT NULL,
      kind TEXT NOT NULL,
      since INTEGER NOT NULL,
      dueAt INTEGER NOT NULL,
      tries INTEGER NOT NULL,
      PRIMARY KEY (admission, kind)
    ) WITHOUT ROWID;
    CREATE INDEX debts_due ON debts (dueAt);
    CREATE TABLE result_bodies (
      admission TEXT NOT NULL,
      part INTEGER NOT NULL,
      bytes BLOB NOT NULL,
      PRIMARY KEY (admission, part)
    )`,
  revocations: "CREATE TABLE revocations (name TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID",
  /** Ends that the meter of an address's network has not heard of yet. */
  network_ends: `CREATE TABLE network_ends (
      admission TEXT PRIMARY KEY,
      network TEXT NOT NULL,
      json TEXT NOT NULL,
      dueAt INTEGER NOT NULL
    ) WITHOUT ROWID`,
  /** `spend.ts` says what it holds. */
  spend: `
    CREATE TABLE spend (
      owner TEXT NOT NULL,
      day INTEGER NOT NULL,
      model TEXT NOT NULL,
      jobs INTEGER NOT NULL CHECK (jobs >= 0),
      known INTEGER NOT NULL CHECK (known >= 0),
      assumed INTEGER NOT NULL CHECK (assumed >= 0),
      PRIMARY KEY (owner, day, model)
    ) WITHOUT ROWID`,
  media: `
    CREATE TABLE media (
      owner TEXT NOT NULL,
      key TEXT NOT NULL,
      field TEXT NOT NULL,
      model TEXT NOT NULL,
      cost REAL,
      size INTEGER,
      completedAt INTEGER NOT NULL,
      expiresAt INTEGER NOT NULL,
      removed INTEGER NOT NULL DEFAULT 0,
      UNIQUE (owner, key)
    );
    CREATE INDEX media_newest ON media (owner, completedAt, key);
    CREATE INDEX media_expiry ON media (expiresAt)`,
  /** With what they count for. */
  uploads: `
    CREATE TABLE uploads (
      key TEXT PRIMARY KEY,
      owner TEXT NOT NULL,
      account TEXT NOT NULL,
      network TEXT,
      type TEXT NOT NULL,
      bytes INTEGER NOT NULL CHECK (bytes > 0),
      state TEXT NOT NULL CHECK (state IN ('open', 'kept', 'over')),
      day INTEGER NOT NULL,
      createdAt INTEGER NOT NULL,
      expiresAt INTEGER NOT NULL,
      busyUntil INTEGER NOT NULL,
      dueAt INTEGER NOT NULL,
      tries INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX uploads_due ON uploads (dueAt);
    CREATE INDEX uploads_newest ON uploads (owner, createdAt, key) WHERE state = 'kept';
    CREATE TABLE upload_counts (
      account TEXT NOT NULL,
      day INTEGER NOT NULL,
      used INTEGER NOT NULL CHECK (used >= 0),
      reserved INTEGER NOT NULL CHECK (reserved >= 0),
      PRIMARY KEY (account, day)
    ) WITHOUT ROWID`,
  /** Meters that had uploads before there was a limit of open ones made that table without it. */
  uploads_open: "CREATE INDEX IF NOT EXISTS uploads_open ON uploads (state) WHERE state = 'open'",
} as const;
export type TableName = keyof typeof whenNeeded;
export const tablesWhenNeeded = Object.keys(whenNeeded) as TableName[];

export class Tables {
  readonly #sql: SqlStorage;
  readonly #made: Set<TableName>;
  #isBorn: boolean;

  constructor(sql: SqlStorage, isBorn: boolean, made: readonly TableName[]) {
    this.#sql = sql;
    this.#isBorn = isBorn;
    this.#made = new Set(made);
  }

  /** Its first row was written, and it was not emptied since. */
  get isBorn(): boolean {
    return this.#isBorn;
  }

  get made(): readonly TableName[] {
    return [...this.#made];
  }

  has(name: TableName): boolean {
    return this.#made.has(name);
  }

  bear(): void {
    if (this.#isBorn) return;
    this.#sql.exec(atBirth);
    this.#isBorn = true;
  }

  need(name: TableName): void {
    if (this.#made.has(name)) return;
    this.bear();
    this.#sql.exec(whenNeeded[name]);
    this.#made.add(name);
  }
}
