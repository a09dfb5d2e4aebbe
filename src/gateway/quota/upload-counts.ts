// What uploads count for: bytes a day, and bytes kept at once; each as what is used and what is reserved, for the payer and
// for a token that narrows.
import { payersAccount } from "./account.ts";
import { dayOf, daysOf, type Period } from "./periods.ts";
import type { Tables } from "./tables.ts";
import type { UploadRow, UploadState } from "./upload-row.ts";

export interface ByteAmounts {
  /** Reservations included. */
  readonly used: number;
  readonly reserved: number;
}

interface Sums extends Record<string, SqlStorageValue> {
  used: number | null;
  reserved: number | null;
}

/** Stands in the place of a day: what is kept at once. */
const atOnce = -1;
/** Longer than the longest period. */
const keptDays = 40;

export class UploadCounts {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;

  constructor(sql: SqlStorage, tables: Tables) {
    this.#sql = sql;
    this.#tables = tables;
  }

  uploaded(account: string, period: Period, now: number): ByteAmounts {
    const { first, last } = daysOf(period, now);
    return this.#sum(account, first, last);
  }

  stored(account: string): ByteAmounts {
    return this.#sum(account, atOnce, atOnce);
  }

  #sum(account: string, first: number, last: number): ByteAmounts {
    if (!this.#tables.has("uploads")) return { used: 0, reserved: 0 };
    const query =
      "SELECT SUM(used) AS used, SUM(reserved) AS reserved FROM upload_counts WHERE account = ? AND day BETWEEN ? AND ?";
    const { used, reserved } = this.#sql.exec<Sums>(query, account, first, last).one();
    return { used: (used ?? 0) + (reserved ?? 0), reserved: reserved ?? 0 };
  }

  reserve({ account, day, bytes }: Pick<UploadRow, "account" | "day" | "bytes">): void {
    this.#change(account, day, 0, bytes);
    this.#change(account, atOnce, 0, bytes);
  }

  keep({ account, day, bytes }: Pick<UploadRow, "account" | "day" | "bytes">): void {
    this.#change(account, day, bytes, -bytes);
    this.#change(account, atOnce, bytes, -bytes);
  }

  /** Of one row, or of many that count alike. */
  end(account: string, day: number, state: UploadState, bytes: number): void {
    if (state === "open") {
      this.#change(account, day, 0, -bytes);
      this.#change(account, atOnce, 0, -bytes);
    } else if (state === "kept") this.#change(account, atOnce, -bytes, 0);
  }

  /** A token's upload is one of its payer's too. */
  #change(account: string, day: number, used: number, reserved: number): void {
    this.#changeOf(payersAccount, day, used, reserved);
    if (account !== payersAccount) this.#changeOf(account, day, used, reserved);
  }

  #changeOf(account: string, day: number, used: number, reserved: number): void {
    this.#sql.exec(
      "INSERT OR IGNORE INTO upload_counts (account, day, used, reserved) VALUES (?, ?, 0, 0)",
      account,
      day,
    );
    const change =
      "UPDATE upload_counts SET used = used + ?3, reserved = reserved + ?4 WHERE account = ?1 AND day = ?2";
    this.#sql.exec(change, account, day, used, reserved);
  }

  /** What was uploaded is forgiven; what is kept and what is reserved stays. */
  reset(): void {
    if (this.#tables.has("uploads")) this.#sql.exec("UPDATE upload_counts SET used = 0 WHERE day <> ?", atOnce);
  }

  prune(now: number): void {
    if (!this.#tables.has("uploads")) return;
    const gone = "(day <> ?1 AND day < ?2 AND reserved = 0) OR (day = ?1 AND used = 0 AND reserved = 0)";
    this.#sql.exec(`DELETE FROM upload_counts WHERE ${gone}`, atOnce, dayOf(now) - keptDays);
  }

  /** By the rows. Answers which counts were something else: never any. */
  recount(): readonly string[] {
    if (!this.#tables.has("uploads")) return [];
    const off = this.audit();
    this.#sql.exec("UPDATE upload_counts SET reserved = 0");
    this.#sql.exec("UPDATE upload_counts SET used = 0 WHERE day = ?", atOnce);
    for (const { account, day, used, reserved } of this.#byRows()) this.#setOf(account, day, used, reserved);
    return off;
  }

  audit(): readonly string[] {
    if (!this.#tables.has("uploads")) return [];
    const counted = new Map<string, string>();
    const query = "SELECT account, day, used, reserved FROM upload_counts";
    for (const row of this.#sql.exec<Counted>(query)) counted.set(nameOf(row), amountsOf(row));
    const byRows = new Map(this.#byRows().map((row) => [nameOf(row), amountsOf(row)]));
    const names = new Set([...counted.keys(), ...byRows.keys()]);
    return [...names].filter((name) => (counted.get(name) ?? nothing(name)) !== (byRows.get(name) ?? nothing(name)));
  }

  #byRows(): Counted[] {
    const sums = (account: string, day: string, used: string) =>
      `SELECT ${account} AS account, ${day} AS day, ${used} AS used,
         SUM(CASE state WHEN 'open' THEN bytes ELSE 0 END) AS reserved
       FROM uploads WHERE state <> 'over' AND ${account} IS NOT NULL GROUP BY 1, 2`;
    const kept = "SUM(CASE state WHEN 'kept' THEN bytes ELSE 0 END)";
    const tokens = "NULLIF(account, '')";
    return ["''", tokens].flatMap((account) => [
      ...this.#sql.exec<Counted>(sums(account, "day", "0")).toArray(),
      ...this.#sql.exec<Counted>(sums(account, String(atOnce), kept)).toArray(),
    ]);
  }

  #setOf(account: string, day: number, used: number, reserved: number): void {
    this.#changeOf(account, day, day === atOnce ? used : 0, reserved);
  }
}

interface Counted extends Record<string, SqlStorageValue> {
  account: string;
  day: number;
  used: number;
  reserved: number;
}

const nameOf = ({ account, day }: Counted) => `${account} ${day === atOnce ? "stored" : `bytes ${day}`}`.trim();
/** What was uploaded on a day stays counted when its rows are gone: only what is reserved can be told from them. */
const amountsOf = ({ day, used, reserved }: Counted) => (day === atOnce ? `${used} ${reserved}` : `${reserved}`);
const nothing = (name: string) => (name.endsWith("stored") ? "0 0" : "0");
