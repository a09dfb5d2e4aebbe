// The account's container registry auths: the rules.
import type { Refusal } from "../queue/views.ts";
import { type Removed, removed } from "./account-calls.ts";
import type { RegistryAuth } from "./registry-auth.ts";
import { absent, inUse, nameTaken, type Page, Rows } from "./rows.ts";

export class RegistryAuthStore {
  readonly #sql: SqlStorage;
  readonly #rows: Rows<RegistryAuth>;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#rows = new Rows(sql, "registry_auths");
  }

  find(id: string): RegistryAuth | Refusal {
    return this.#rows.find(id) ?? absent("container registry auth");
  }

  page(after: number): Page {
    return this.#rows.page("1", [], after);
  }

  create(auth: RegistryAuth, username: string): RegistryAuth | Refusal {
    if (this.#rows.has("name = ?", auth.name)) return nameTaken(auth.name);
    // An earlier version kept the password, sealed, in a column that must not be empty.
    this.#rows.add(auth, { username, sealed: new ArrayBuffer() });
    return auth;
  }

  remove(id: string): Removed | Refusal {
    if (!this.#rows.find(id)) return absent("container registry auth");
    const used = ["templates", "pods"].some((table) =>
      new Rows(this.#sql, table).has("containerRegistryAuthId = ?", id),
    );
    if (used) return inUse("container registry auth", "templates or Pods");
    this.#rows.remove(id);
    return removed;
  }
}
