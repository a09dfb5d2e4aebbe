// The objects that an account speaks with: the queues of its endpoints, the public catalogue, other accounts.
import { handOn, type Remote, remote } from "../../wire/remote.ts";
import { queueName } from "../endpoints.ts";
import type { EndpointQueue } from "../queue/endpoint-queue.ts";
import type { Refusal } from "../queue/views.ts";
import type { Account } from "./account.ts";
import { catalogueName } from "./catalogue.ts";
import type { Duty } from "./duties.ts";
import { computeOf, type EndpointBook } from "./endpoint-book.ts";
import type { Endpoint } from "./endpoints.ts";
import { workerAsPod } from "./includes.ts";
import type { Ledger } from "./ledger.ts";
import type { Pod } from "./pod.ts";
import { officialTemplate, type Template } from "./template.ts";
import type { TemplateBook } from "./template-book.ts";

export interface Home {
  readonly account: string;
  readonly sql: SqlStorage;
  readonly ledger: Ledger;
  readonly templates: TemplateBook;
  readonly endpoints: EndpointBook;
  readonly now: () => number;
}

export class Neighbours {
  readonly #env: Env;
  readonly #home: Home;
  /** Templates of others that are about to be used here, by how many calls. */
  readonly #borrowing = new Map<string, number>();

  constructor(env: Env, home: Home) {
    this.#env = env;
    this.#home = home;
  }

  #queue(endpoint: string): Remote<EndpointQueue> {
    return remote(this.#env.ENDPOINT_QUEUE, queueName(this.#home.account, endpoint));
  }

  #account(name: string): Remote<Account> {
    return remote(this.#env.ACCOUNT, name);
  }

  /** Brings the neighbour to what is true here now; throws where it is not reached. */
  async perform({ kind, id }: Duty): Promise<void> {
    if (kind === "configure") return this.#configure(id);
    if (kind === "wipe") return this.#wipe(id);
    if (kind === "publish") return this.#publish(id);
    return this.#credit(id);
  }

  async #configure(endpoint: string): Promise<void> {
    const settings = this.#home.endpoints.settings(endpoint);
    if (settings) await this.#queue(endpoint).configure(settings);
  }

  /** What ran is booked before the queue that knows of it is gone. */
  async #wipe(endpoint: string): Promise<void> {
    this.#home.ledger.book(endpoint, await this.#queue(endpoint).retire());
    await this.#queue(endpoint).wipe();
  }

  async #publish(id: string): Promise<void> {
    const template = this.#home.templates.find(id);
    if (template?.isPublic) await this.#account(catalogueName).publishTemplate(this.#home.account, template);
    else await this.#account(catalogueName).unlistTemplate(this.#home.account, id);
  }

  async #credit(id: string): Promise<void> {
    const query = "SELECT owner FROM borrowed_templates WHERE id = ?";
    const owner = this.#home.sql.exec<{ owner: string }>(query, id).toArray()[0]?.owner;
    if (owner === undefined) return;
    this.#home.ledger.accrue(this.#home.now());
    await this.#account(owner).creditTemplate(id, this.#home.account, this.#home.ledger.spentWith(id));
  }

  /** Takes a template back from the catalogue, unless others use it. */
  async withdraw(id: string): Promise<Refusal | { withdrawn: true }> {
    return handOn(await this.#account(catalogueName).withdrawTemplate(this.#home.account, id));
  }

  isBorrowing(id: string): boolean {
    return this.#borrowing.has(id);
  }

  /** Runs with another account's template in hand, where that is what the id names. */
  async borrow<T>(id: string | null | undefined, act: (borrowed?: Template) => Promise<T> | T): Promise<T> {
    if (!id || this.#home.templates.isOwnOrOfficial(id)) return act();
    this.#borrowing.set(id, (this.#borrowing.get(id) ?? 0) + 1);
    try {
      const borrowed = await this.#account(catalogueName).borrowTemplate(id, this.#home.account);
      if (borrowed) {
        const keep = "INSERT OR REPLACE INTO borrowed_templates (id, owner) VALUES (?, ?)";
        this.#home.sql.exec(keep, id, borrowed.owner);
      }
      return await act(borrowed?.template);
    } finally {
      const left = (this.#borrowing.get(id) ?? 1) - 1;
      if (left > 0) this.#borrowing.set(id, left);
      else this.#borrowing.delete(id);
    }
  }

  /** Whosever it is. */
  async template(id: string | undefined): Promise<Template | undefined> {
    if (id === undefined) return undefined;
    const near = this.#home.templates.find(id) ?? officialTemplate(id);
    return near ?? (await this.#account(catalogueName).findPublicTemplate(id));
  }

  async workersOf(endpoint: Endpoint): Promise<Pod[]> {
    const metrics = await this.#queue(endpoint.id).metrics();
    if ("refused" in metrics || metrics.readyWorkers.length === 0) return [];
    const template = await this.template(endpoint.templateId);
    return metrics.readyWorkers.map((worker) => workerAsPod(worker, endpoint, template, computeOf(endpoint)));
  }
}
