// The objects that an account calls: the queues of its endpoints and the public catalogue.
import { answersWithinMs, type Remote, timed } from "../../durable/remote.ts";
import { type QueueStub, queueOf } from "../queue/queue-calls.ts";
import { type CatalogueCalls, catalogueOf } from "./account-calls.ts";
import type { Endpoint } from "./endpoint.ts";
import { computeOf, type EndpointStore } from "./endpoint-store.ts";
import { workerAsPod } from "./includes.ts";
import type { Ledger } from "./ledger.ts";
import type { Pod } from "./pod.ts";
import type { Task } from "./reconciler.ts";
import type { Template } from "./template-input.ts";
import type { TemplateStore } from "./template-store.ts";

/** What is said of one endpoint's workers, as JSON: some thousands of them, unless each has a large environment. */
const maxWorkersLength = 6 * 1024 * 1024;

export interface RemoteObjectsDeps {
  readonly account: string;
  readonly ledger: Ledger;
  readonly templates: TemplateStore;
  readonly endpoints: EndpointStore;
}

export class RemoteObjects {
  readonly #env: Env;
  readonly #deps: RemoteObjectsDeps;

  constructor(env: Env, deps: RemoteObjectsDeps) {
    this.#env = env;
    this.#deps = deps;
  }

  #queue(endpoint: string): QueueStub {
    return timed(queueOf(this.#env, this.#deps.account, endpoint), answersWithinMs.asked);
  }

  #catalogue(): Remote<CatalogueCalls> {
    return catalogueOf(this.#env, answersWithinMs.asked);
  }

  /** Tells the other object what is true here now. Throws if it cannot be reached. */
  async perform({ kind, id }: Task): Promise<void> {
    if (kind === "configure") return this.#configure(id);
    if (kind === "wipe") return this.#wipe(id);
    return this.#publish(id);
  }

  async #configure(endpoint: string): Promise<void> {
    const settings = this.#deps.endpoints.settings(endpoint);
    if (settings) await this.#queue(endpoint).configure(settings);
  }

  /** Books what ran first: only the queue knows of it, and the queue is about to go. */
  async #wipe(endpoint: string): Promise<void> {
    this.#deps.ledger.book(endpoint, await this.#queue(endpoint).retire());
    await this.#queue(endpoint).wipe();
  }

  async #publish(id: string): Promise<void> {
    const template = this.#deps.templates.find(id);
    if (template?.isPublic) await this.#catalogue().publishTemplate(this.#deps.account, template);
    else await this.#catalogue().unlistTemplate(this.#deps.account, id);
  }

  /** The public template of another account; undefined for a template that this account has itself. */
  async publicTemplate(id: string | null | undefined): Promise<Template | undefined> {
    if (!id || this.#deps.templates.known(id)) return undefined;
    return this.#catalogue().findPublicTemplate(id);
  }

  async workersOf(endpoint: Endpoint): Promise<Pod[]> {
    const metrics = await this.#queue(endpoint.id).metrics();
    if ("refused" in metrics || metrics.readyWorkers.length === 0) return [];
    const template = this.#deps.templates.usedBy("endpoints", endpoint.id);
    const asPod = (worker: string) => workerAsPod(worker, endpoint, template, computeOf(endpoint));
    const [first = ""] = metrics.readyWorkers;
    const most = Math.ceil(maxWorkersLength / JSON.stringify(asPod(first)).length);
    return metrics.readyWorkers.slice(0, most).map(asPod);
  }
}
