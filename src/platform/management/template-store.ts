// The account's templates, and which ones its Pods and endpoints may use.
import type { Refusal } from "../queue/views.ts";
import { changed, refer } from "./fields.ts";
import { absent, inUse, nameTaken, type Page, Rows } from "./rows.ts";
import { officialTemplate } from "./template.ts";
import type { Template, TemplateChange } from "./template-input.ts";

export class TemplateStore {
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
  }

  /** Notes whether an endpoint uses the template. */
  bind(id: string): void {
    const bound = "EXISTS (SELECT 1 FROM endpoints WHERE templateId = ?1)";
    this.#sql.exec(`UPDATE templates SET bound = ${bound} WHERE id = ?1`, id);
  }

  /** One of its own, or an official one. */
  known(id: string): Template | undefined {
    return this.#rows.find(id) ?? officialTemplate(id);
  }

  /** The template of a Pod or an endpoint. One of another account is kept as a copy, and stays as it was. */
  usedBy(table: "pods" | "endpoints", id: string): Template | undefined {
    const query = `SELECT templateId, templateCopy FROM ${table} WHERE id = ?`;
    const [row] = this.#sql.exec<{ templateId: string | null; templateCopy: string | null }>(query, id).toArray();
    if (row?.templateCopy) return JSON.parse(row.templateCopy) as Template;
    return row?.templateId ? this.known(row.templateId) : undefined;
  }

  /** The copy to keep beside a Pod or an endpoint; null for a template that the account has itself. */
  copyOf(template: Template | undefined): string | null {
    return template && !this.known(template.id) ? JSON.stringify(template) : null;
  }
}

/** A Pod's template makes no workers, nor a worker's a Pod. */
export function wrongKind(template: Template, isServerless: boolean): Refusal | undefined {
  if (template.isServerless === isServerless) return undefined;
  const made = isServerless
    ? "an endpoint takes a serverless template"
    : "a Pod takes a template that is not serverless";
  return { refused: "INVALID_REQUEST", detail: `templateId: ${made}` };
}

export function unknownReference(path: string, what: string): Refusal {
  return { refused: "INVALID_REQUEST", detail: `${path}: there is no such ${what}` };
}
