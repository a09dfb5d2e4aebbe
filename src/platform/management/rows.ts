// Records as JSON rows, in the order of their creation; lists come in pages, each record as the text that is stored.
import type { Refusal } from "../queue/views.ts";

export interface Page {
  readonly items: readonly string[];
  /** Where the next page begins; null at the end. */
  readonly next: number | null;
}

/** A page of rows as they are stored. */
export interface RowPage extends Page {
  /** Where each row stands: the next page may begin behind any of them. */
  readonly places: readonly number[];
}

/** As much as one call brings: 32 MiB is the most that it can carry, and a character may take two bytes. */
const pageRows = 500;
const pageLength = 4 * 1024 * 1024;
/** How many rows are completed together. */
const atOnce = 20;

export class Rows<T extends { readonly id: string }> {
  readonly #sql: SqlStorage;
  readonly #table: string;

  constructor(sql: SqlStorage, table: string) {
    this.#sql = sql;
    this.#table = table;
  }

  find(id: string): T | undefined {
    const rows = this.#sql.exec<{ json: string }>(`SELECT json FROM ${this.#table} WHERE id = ?`, id).toArray();
    return rows[0] && (JSON.parse(rows[0].json) as T);
  }

  add(record: T, more: Record<string, SqlStorageValue> = {}): void {
    const names = ["json", ...Object.keys(more)];
    const places = names.map(() => "?").join(", ");
    const insert = `INSERT INTO ${this.#table} (${names.join(", ")}) VALUES (${places})`;
    this.#sql.exec(insert, JSON.stringify(record), ...Object.values(more));
  }

  put(record: T): void {
    this.#sql.exec(`UPDATE ${this.#table} SET json = ? WHERE id = ?`, JSON.stringify(record), record.id);
  }

  remove(id: string): void {
    this.#sql.exec(`DELETE FROM ${this.#table} WHERE id = ?`, id);
  }

  has(where: string, ...bindings: SqlStorageValue[]): boolean {
    return this.#sql.exec(`SELECT 1 FROM ${this.#table} WHERE ${where} LIMIT 1`, ...bindings).toArray().length > 0;
  }

  page(where: string, bindings: readonly SqlStorageValue[], after: number): RowPage {
    const query = `SELECT seq, json FROM ${this.#table} WHERE ${where} AND seq > ? ORDER BY seq LIMIT ?`;
    const items: string[] = [];
    const places: number[] = [];
    let length = 0;
    for (const { seq, json } of this.#sql.exec<{ seq: number; json: string }>(query, ...bindings, after, pageRows)) {
      items.push(json);
      places.push(seq);
      length += json.length;
      if (length > pageLength) break;
    }
    const isLast = items.length < pageRows && length <= pageLength;
    return { items, places, next: isLast ? null : (places.at(-1) ?? null) };
  }
}

/** The page with what is answered for each of its rows; as many rows as one call can carry then. */
export async function completed<T>(
  { items, places, next }: RowPage,
  complete: (record: T) => Promise<readonly object[]>,
): Promise<Page> {
  const whole: string[] = [];
  let length = 0;
  for (let from = 0; from < items.length; from += atOnce) {
    const records = items.slice(from, from + atOnce).map((json) => JSON.parse(json) as T);
    for (const [at, answered] of (await Promise.all(records.map(complete))).entries()) {
      for (const record of answered) {
        const text = JSON.stringify(record);
        whole.push(text);
        length += text.length;
      }
      if (length > pageLength) return { items: whole, next: places[from + at] ?? null };
    }
  }
  return { items: whole, next };
}

export function absent(what: string): Refusal {
  return { refused: "NOT_FOUND", detail: `${what} not found` };
}

export function nameTaken(name: string): Refusal {
  return { refused: "NAME_TAKEN", detail: `name: ${JSON.stringify(name)} is taken` };
}

export function inUse(what: string, by: string): Refusal {
  return { refused: "IN_USE", detail: `this ${what} is in use by ${by}` };
}

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";

/** Long enough that two never meet. */
export function newId(length = 14): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  return Array.from(bytes, (byte) => alphabet[byte % alphabet.length]).join("");
}
