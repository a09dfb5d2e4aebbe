// What callers may do with endpoints: the store changes first, then the queue learns of it.
import type { Refusal } from "../queue/views.ts";
import { type KnownEndpoint, type Removed, removed } from "./account-calls.ts";
import type { Endpoint, EndpointChange, EndpointIncludes, EndpointInput } from "./endpoint.ts";
import type { EndpointStore } from "./endpoint-store.ts";
import type { Pod } from "./pod.ts";
import { matches } from "./pod-filter.ts";
import type { PodFilter } from "./pod-input.ts";
import type { RemoteObjects } from "./remote-objects.ts";
import { absent, completed, type Page } from "./rows.ts";
import type { Transactions } from "./transactions.ts";

export class EndpointService {
  readonly #transactions: Transactions;
  readonly #store: EndpointStore;
  readonly #remote: RemoteObjects;

  constructor(transactions: Transactions, store: EndpointStore, remote: RemoteObjects) {
    this.#transactions = transactions;
    this.#store = store;
    this.#remote = remote;
  }

  async list(includes: EndpointIncludes, after: number): Promise<Page> {
    const page = this.#store.page(after);
    if (!includes.includeTemplate && !includes.includeWorkers) return page;
    return completed<Endpoint>(page, async (record) => [await this.#include(record, includes)]);
  }

  async find(id: string, includes: EndpointIncludes): Promise<Endpoint | Refusal> {
    const endpoint = this.#store.find(id);
    return endpoint ? this.#include(endpoint, includes) : absent("endpoint");
  }

  async #include(endpoint: Endpoint, includes: EndpointIncludes): Promise<Endpoint> {
    const template = includes.includeTemplate ? this.#store.template(endpoint.id) : undefined;
    const workers = includes.includeWorkers ? await this.#remote.workersOf(endpoint) : undefined;
    return {
      ...endpoint,
      ...(template && { template }),
      ...(workers && { workers }),
    };
  }

  known(id: string): KnownEndpoint | undefined {
    const endpoint = this.#store.find(id);
    return endpoint && { workerUrls: endpoint.workerUrls };
  }

  async create(id: string, input: EndpointInput): Promise<Endpoint | Refusal> {
    const shared = await this.#remote.publicTemplate(input.templateId);
    return this.#configured(id, () => this.#store.create(id, this.#transactions.account, input, Date.now(), shared));
  }

  async update(id: string, change: EndpointChange): Promise<Endpoint | Refusal> {
    // An endpoint that an earlier version made has no copy yet.
    const uncopied = this.#store.template(id) ? undefined : this.#store.find(id)?.templateId;
    const shared = await this.#remote.publicTemplate(change.templateId ?? uncopied);
    return this.#configured(id, () => this.#store.update(id, change, shared));
  }

  async #configured(id: string, act: () => Endpoint | Refusal): Promise<Endpoint | Refusal> {
    const endpoint = this.#transactions.change(() => {
      const made = act();
      if (!("refused" in made)) this.#transactions.enqueue("configure", id);
      return made;
    });
    if (!("refused" in endpoint)) await this.#transactions.perform("configure", id);
    return endpoint;
  }

  async delete(id: string): Promise<Refusal | Removed> {
    const known = this.#transactions.change(() => {
      if (!this.#store.remove(id)) return false;
      this.#transactions.enqueue("wipe", id);
      return true;
    });
    if (!known) return absent("endpoint");
    await this.#transactions.perform("wipe", id);
    return removed;
  }

  /** The workers that match the filter, those of some endpoints at a time. */
  workers(filter: PodFilter, after: number): Promise<Page> {
    return completed<Endpoint>(this.#store.page(after), async (endpoint) => {
      if (filter.endpointId !== undefined && filter.endpointId !== endpoint.id) return [];
      return (await this.#remote.workersOf(endpoint)).filter((worker) => matches(worker, filter));
    });
  }

  async worker(filter: PodFilter): Promise<Pod | undefined> {
    for (let after: number | null = 0; after !== null; ) {
      const page: Page = await this.workers(filter, after);
      if (page.items[0] !== undefined) return JSON.parse(page.items[0]) as Pod;
      after = page.next;
    }
    return undefined;
  }
}
