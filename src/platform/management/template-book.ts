// The account's templates, and which ones its Pods and endpoints may use.
import type { Refusal } from "../queue/views.ts";
import { changed, refer } from "./fields.ts";
import type { Credit } from "./ledger.ts";
import { earnedMicroUsd, usd } from "./prices.ts";
import { absent, inUse, nameTaken, type Page, Rows } from "./rows.ts";
import { officialTemplate, type Template } from "./template.ts";
import type { TemplateChange } from "./templates.ts";

/** A template that may be used, and whether another account earns by it. */
export interface Usable {
  readonly template: Template;
  readonly borrowed: boolean;
}

export class TemplateBook {
  readonly #sql: SqlStorage;
  readonly #rows: Rows<Template>;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#rows = new Rows(sql, "templates");
  }

  find(id: string): Template | undefined {
    return this.#rows.find(id);
  }

  isBound(id: string): boolean {
    return this.#rows.has("id = ? AND bound = 1", id);
  }

  page(withBound: boolean, after: number): Page {
    return this.#rows.page(withBound ? "1" : "bound = 0", [], after);
  }

  create(template: Template): Template | Refusal {
    const refusal = this.#refuse(template);
    if (refusal) return refusal;
    this.#rows.add(template);
    return template;
  }

  update(id: string, { containerRegistryAuthId: auth, ...change }: TemplateChange): Template | Refusal {
    const known = this.#rows.find(id);
    if (!known) return absent("template");
    const { containerRegistryAuthId, ...others } = known;
    const referred = refer(containerRegistryAuthId, auth);
    const next = changed<Template>({ ...others, ...(referred && { containerRegistryAuthId: referred }) }, change);
    const refusal = this.#refuse(next);
    if (refusal) return refusal;
    this.#rows.put(next);
    return next;
  }

  #refuse({ id, name, containerRegistryAuthId: auth }: Template): Refusal | undefined {
    if (this.#rows.has("name = ? AND id <> ?", name, id)) return nameTaken(name);
    const known = auth === undefined || new Rows(this.#sql, "registry_auths").has("id = ?", auth);
    return known ? undefined : unknownReference("containerRegistryAuthId", "container registry auth");
  }

  uses(id: string): boolean {
    return ["pods", "endpoints"].some((table) => new Rows(this.#sql, table).has("templateId = ?", id));
  }

  refuseRemoval(id: string): Refusal | undefined {
    if (!this.#rows.find(id)) return absent("template");
    return this.uses(id) ? inUse("template", "Pods or endpoints") : undefined;
  }

  remove(id: string): void {
    this.#rows.remove(id);
    this.#sql.exec("DELETE FROM credits WHERE template = ?", id);
  }

  /** Follows what endpoints use. */
  bind(id: string): void {
    const bound = "EXISTS (SELECT 1 FROM endpoints WHERE templateId = ?1)";
    this.#sql.exec(`UPDATE templates SET bound = ${bound} WHERE id = ?1`, id);
  }

  /** What another account has spent with it so far, which only grows. */
  credit(id: string, account: string, { microUsd, ms }: Credit): Template | undefined {
    const template = this.#rows.find(id);
    if (!template) return undefined;
    this.#sql.exec(
      `INSERT INTO credits (template, account, microUsd, ms) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET microUsd = MAX(microUsd, excluded.microUsd), ms = MAX(ms, excluded.ms)`,
      ...[id, account, microUsd, ms],
    );
    const query = "SELECT SUM(microUsd) AS microUsd, SUM(ms) AS ms FROM credits WHERE template = ?";
    const sum = this.#sql.exec<Credit>(query, id).one();
    const earned = usd(earnedMicroUsd(sum.microUsd));
    const next = { ...template, earned, runtimeInMin: Math.floor(sum.ms / minuteMs) };
    this.#rows.put(next);
    return next;
  }

  /** Own and official ones at once; another account's only where it was asked for before. */
  usable(id: string, borrowed: Template | undefined): Usable | undefined {
    const template = this.#rows.find(id) ?? officialTemplate(id);
    if (template) return { template, borrowed: false };
    return borrowed?.id === id ? { template: borrowed, borrowed: true } : undefined;
  }

  isOwnOrOfficial(id: string): boolean {
    return officialTemplate(id) !== undefined || this.#rows.has("id = ?", id);
  }
}

const minuteMs = 60_000;

export function unknownReference(path: string, what: string): Refusal {
  return { refused: "INVALID_REQUEST", detail: `${path}: there is no such ${what}` };
}
