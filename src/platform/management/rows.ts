// Records as JSON rows, in the order of their creation; lists come in pages, each record as the text that is stored.
import type { Refusal } from "../queue/views.ts";

export interface Page {
  readonly items: readonly string[];
  /** Where the next page begins; null at the end. */
  readonly next: number | null;
}

/** As many rows as one call brings: their texts stay far under what a call can carry. */
const pageRows = 500;

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

  page(where: string, bindings: readonly SqlStorageValue[], after: number): Page {
    const query = `SELECT seq, json FROM ${this.#table} WHERE ${where} AND seq > ? ORDER BY seq LIMIT ?`;
    const rows = this.#sql.exec<{ seq: number; json: string }>(query, ...bindings, after, pageRows).toArray();
    const next = rows.length === pageRows ? (rows.at(-1)?.seq ?? null) : null;
    return { items: rows.map(({ json }) => json), next };
  }
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
