// What callers may do with templates: the store changes first, then the public catalogue and the endpoints that use it.
import type { Refusal } from "../queue/views.ts";
import { type Removed, removed } from "./account-calls.ts";
import type { EndpointStore } from "./endpoint-store.ts";
import type { Template, TemplateChange } from "./template-input.ts";
import type { TemplateStore } from "./template-store.ts";
import type { Transactions } from "./transactions.ts";

export class TemplateService {
  readonly #transactions: Transactions;
  readonly #store: TemplateStore;
  readonly #endpoints: EndpointStore;

  constructor(transactions: Transactions, stores: { templates: TemplateStore; endpoints: EndpointStore }) {
    this.#transactions = transactions;
    this.#store = stores.templates;
    this.#endpoints = stores.endpoints;
  }

  find(id: string, withBound: boolean): Template | undefined {
    return withBound || !this.#store.isBound(id) ? this.#store.find(id) : undefined;
  }

  async create(template: Template): Promise<Template | Refusal> {
    const created = this.#transactions.change(() => this.#enqueuePublication(this.#store.create(template)));
    if (!("refused" in created) && created.isPublic) await this.#transactions.perform("publish", created.id);
    return created;
  }

  async update(id: string, change: TemplateChange): Promise<Template | Refusal> {
    const wasPublic = this.#store.find(id)?.isPublic ?? false;
    let followers: string[] = [];
    const updated = this.#transactions.change(() => {
      const next = this.#enqueuePublication(this.#store.update(id, change), wasPublic);
      if (!("refused" in next)) followers = this.#endpoints.follow(next);
      for (const endpoint of followers) this.#transactions.enqueue("configure", endpoint);
      return next;
    });
    await this.#transactions.perform("publish", id);
    await Promise.all(followers.map((endpoint) => this.#transactions.perform("configure", endpoint)));
    return updated;
  }

  async delete(id: string): Promise<Refusal | Removed> {
    const refusal = this.#transactions.change(() => {
      const refused = this.#store.refuseRemoval(id);
      if (refused) return refused;
      if (this.#store.find(id)?.isPublic) this.#transactions.enqueue("publish", id);
      this.#store.remove(id);
      return undefined;
    });
    if (refusal) return refusal;
    await this.#transactions.perform("publish", id);
    return removed;
  }

  /** The catalogue learns of a template that is public, or was. */
  #enqueuePublication(template: Template | Refusal, wasPublic = false): Template | Refusal {
    if (!("refused" in template) && (template.isPublic || wasPublic))
      this.#transactions.enqueue("publish", template.id);
    return template;
  }
}
