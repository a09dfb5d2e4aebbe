// The public templates of all accounts, and which accounts use them. It lives in an object of its own.
import type { Refusal } from "../queue/views.ts";
import { inUse, type Page, Rows } from "./rows.ts";
import type { Template } from "./template.ts";

/** No account can be called so: a slash is no part of a name. */
export const catalogueName = "public/catalogue";

export interface Borrowed {
  readonly template: Template;
  readonly owner: string;
}

export class Catalogue {
  readonly #sql: SqlStorage;
  readonly #rows: Rows<Template>;
  /** Templates that are being taken back: nobody begins to use them meanwhile. */
  readonly #leaving = new Set<string>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#rows = new Rows(sql, "public_templates");
  }

  /** What refers to the owner's secrets stays with the owner. */
  publish(owner: string, { containerRegistryAuthId: _, ...template }: Template): void {
    if (this.#rows.has("id = ? AND owner = ?", template.id, owner)) this.#rows.put(template);
    else this.#rows.add(template, { owner });
  }

  unlist(owner: string, id: string): void {
    if (!this.#rows.has("id = ? AND owner = ?", id, owner)) return;
    this.#sql.exec("DELETE FROM borrowers WHERE template = ?", id);
    this.#rows.remove(id);
  }

  /** Refused while another account uses it. Who uses it is asked anew, since nobody says when they cease to. */
  async withdraw(
    owner: string,
    id: string,
    uses: (account: string) => Promise<boolean>,
  ): Promise<Refusal | { withdrawn: true }> {
    if (!this.#rows.has("id = ? AND owner = ?", id, owner)) return { withdrawn: true };
    this.#leaving.add(id);
    try {
      for (const account of this.#borrowers(id)) {
        if (await uses(account)) return inUse("template", "other accounts");
        this.#sql.exec("DELETE FROM borrowers WHERE template = ? AND account = ?", id, account);
      }
      this.#rows.remove(id);
      return { withdrawn: true };
    } finally {
      this.#leaving.delete(id);
    }
  }

  #borrowers(id: string): string[] {
    const query = "SELECT account FROM borrowers WHERE template = ?";
    return this.#sql
      .exec<{ account: string }>(query, id)
      .toArray()
      .map(({ account }) => account);
  }

  /** The account is about to use it: from now on it is asked before the template goes. */
  borrow(id: string, account: string): Borrowed | undefined {
    const template = this.#leaving.has(id) ? undefined : this.#rows.find(id);
    if (!template) return undefined;
    this.#sql.exec("INSERT OR IGNORE INTO borrowers (template, account) VALUES (?, ?)", id, account);
    const query = "SELECT owner FROM public_templates WHERE id = ?";
    return { template, owner: this.#sql.exec<{ owner: string }>(query, id).one().owner };
  }

  find(id: string): Template | undefined {
    return this.#rows.find(id);
  }

  /** All but the account's own. */
  page(account: string, after: number): Page {
    return this.#rows.page("owner <> ?", [account], after);
  }
}
