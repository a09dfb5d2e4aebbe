// Templates as they are asked for: the book here, the public catalogue in step with it, endpoints that follow.
import type { Refusal } from "../queue/views.ts";
import type { EndpointBook } from "./endpoint-book.ts";
import type { Neighbours } from "./neighbours.ts";
import { type Office, type Removed, removed } from "./office.ts";
import type { Template } from "./template.ts";
import type { TemplateBook } from "./template-book.ts";
import type { TemplateChange } from "./templates.ts";

export class TemplateDesk {
  readonly #office: Office;
  readonly #book: TemplateBook;
  readonly #endpoints: EndpointBook;
  readonly #neighbours: Neighbours;

  constructor(office: Office, books: { templates: TemplateBook; endpoints: EndpointBook }, neighbours: Neighbours) {
    this.#office = office;
    this.#book = books.templates;
    this.#endpoints = books.endpoints;
    this.#neighbours = neighbours;
  }

  find(id: string, withBound: boolean): Template | undefined {
    return withBound || !this.#book.isBound(id) ? this.#book.find(id) : undefined;
  }

  async create(template: Template): Promise<Template | Refusal> {
    const created = this.#office.change(() => this.#owePublication(this.#book.create(template)));
    if (!("refused" in created) && created.isPublic) await this.#office.perform("publish", created.id);
    return created;
  }

  async update(id: string, change: TemplateChange): Promise<Template | Refusal> {
    const known = this.#book.find(id);
    const refusal = known?.isPublic && change.isPublic === false ? await this.#withdraw(id) : undefined;
    if (refusal) return refusal;
    let followers: string[] = [];
    const updated = this.#office.change(() => {
      const next = this.#owePublication(this.#book.update(id, change));
      if (!("refused" in next)) followers = this.#endpoints.follow(next);
      for (const endpoint of followers) this.#office.owe("configure", endpoint);
      return next;
    });
    if (known) await this.#office.perform("publish", id);
    await Promise.all(followers.map((endpoint) => this.#office.perform("configure", endpoint)));
    return updated;
  }

  async delete(id: string): Promise<Refusal | Removed> {
    const refusal =
      this.#book.refuseRemoval(id) ?? (this.#book.find(id)?.isPublic ? await this.#withdraw(id) : undefined);
    if (refusal) return refusal;
    // While the catalogue was asked, somebody may have begun to use it here.
    const late = this.#office.change(() => {
      const refused = this.#book.refuseRemoval(id);
      if (!refused) this.#book.remove(id);
      return refused;
    });
    await this.#office.perform("publish", id);
    return late ?? removed;
  }

  /** Takes a public template back. Whatever happens after this, the catalogue hears the truth in the end. */
  async #withdraw(id: string): Promise<Refusal | undefined> {
    this.#office.change(() => this.#office.owe("publish", id));
    const answer = await this.#neighbours.withdraw(id);
    return "refused" in answer ? answer : undefined;
  }

  #owePublication(template: Template | Refusal): Template | Refusal {
    if (!("refused" in template) && template.isPublic) this.#office.owe("publish", template.id);
    return template;
  }
}
