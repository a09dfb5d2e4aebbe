// The public templates of all accounts. It lives in an object of its own.
import { type Page, Rows } from "./rows.ts";
import type { Template } from "./template-input.ts";

export class Catalogue {
  readonly #rows: Rows<Template>;

  constructor(sql: SqlStorage) {
    this.#rows = new Rows(sql, "public_templates");
  }

  /** What refers to the owner's secrets stays with the owner. */
  publish(owner: string, { containerRegistryAuthId: _, ...template }: Template): void {
    if (this.#rows.has("id = ? AND owner = ?", template.id, owner)) this.#rows.put(template);
    else this.#rows.add(template, { owner });
  }

  unlist(owner: string, id: string): void {
    if (this.#rows.has("id = ? AND owner = ?", id, owner)) this.#rows.remove(id);
  }

  find(id: string): Template | undefined {
    return this.#rows.find(id);
  }

  /** All but the account's own. */
  page(account: string, after: number): Page {
    return this.#rows.page("owner <> ?", [account], after);
  }
}
