// Endpoints as they are asked for: the book here, and the queues in step with it.
import type { Refusal } from "../queue/views.ts";
import type { EndpointBook } from "./endpoint-book.ts";
import type { Endpoint, EndpointChange, EndpointIncludes, EndpointInput } from "./endpoints.ts";
import type { Neighbours } from "./neighbours.ts";
import { inTurns, type Office, type Removed, removed } from "./office.ts";
import type { Pod } from "./pod.ts";
import { matches } from "./pod-filter.ts";
import type { PodFilter } from "./pod-input.ts";
import { absent, type Page } from "./rows.ts";

export class EndpointDesk {
  readonly #office: Office;
  readonly #book: EndpointBook;
  readonly #neighbours: Neighbours;

  constructor(office: Office, book: EndpointBook, neighbours: Neighbours) {
    this.#office = office;
    this.#book = book;
    this.#neighbours = neighbours;
  }

  async list(includes: EndpointIncludes, after: number): Promise<Page> {
    const page = this.#book.page(after);
    if (!includes.includeTemplate && !includes.includeWorkers) return page;
    const records = page.items.map((json) => JSON.parse(json) as Endpoint);
    const whole = await inTurns(records, (record) => this.#include(record, includes));
    return { ...page, items: whole.map((record) => JSON.stringify(record)) };
  }

  async find(id: string, includes: EndpointIncludes): Promise<Endpoint | Refusal> {
    const endpoint = this.#book.find(id);
    return endpoint ? this.#include(endpoint, includes) : absent("endpoint");
  }

  async #include(endpoint: Endpoint, includes: EndpointIncludes): Promise<Endpoint> {
    const template = includes.includeTemplate ? await this.#neighbours.template(endpoint.templateId) : undefined;
    const workers = includes.includeWorkers ? await this.#neighbours.workersOf(endpoint) : undefined;
    return {
      ...endpoint,
      ...(template && { template: template as Endpoint["template"] }),
      ...(workers && { workers }),
    };
  }

  has(id: string): boolean {
    return this.#book.find(id) !== undefined;
  }

  create(id: string, input: EndpointInput): Promise<Endpoint | Refusal> {
    return this.#neighbours.borrow(input.templateId, (borrowed) =>
      this.#configured(id, () => this.#book.create(id, this.#office.account, input, Date.now(), borrowed)),
    );
  }

  update(id: string, change: EndpointChange): Promise<Endpoint | Refusal> {
    return this.#neighbours.borrow(change.templateId ?? this.#book.find(id)?.templateId, (borrowed) =>
      this.#configured(id, () => this.#book.update(id, change, borrowed)),
    );
  }

  async #configured(id: string, act: () => Endpoint | Refusal): Promise<Endpoint | Refusal> {
    const endpoint = this.#office.change(() => {
      const made = act();
      if (!("refused" in made)) this.#office.owe("configure", id);
      return made;
    });
    if (!("refused" in endpoint)) await this.#office.perform("configure", id);
    return endpoint;
  }

  async delete(id: string): Promise<Refusal | Removed> {
    const known = this.#office.change(() => {
      if (!this.#book.remove(id)) return false;
      this.#office.owe("wipe", id);
      return true;
    });
    if (!known) return absent("endpoint");
    await this.#office.perform("wipe", id);
    return removed;
  }

  /** The workers of all endpoints that the filter lets pass. */
  async workers(filter: PodFilter): Promise<Pod[]> {
    const found: Pod[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const page: Page = this.#book.page(after);
      const asked = page.items.map((json) => JSON.parse(json) as Endpoint);
      const wanted = asked.filter(({ id }) => filter.endpointId === undefined || filter.endpointId === id);
      found.push(...(await inTurns(wanted, (endpoint) => this.#neighbours.workersOf(endpoint))).flat());
      after = page.next;
    }
    return found.filter((worker) => matches(worker, filter));
  }
}
