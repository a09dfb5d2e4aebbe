// The model service's operations on one model: each knows its path, and whether it may be asked twice.
import { Problem } from "../../errors.ts";
import { type Answered, type Call, callUpstream, type Upstream } from "./upstream.ts";

/** A body on its way up; `sent` settles when all of one that streams was sent. */
export type Sending = Pick<Call, "body" | "sent">;

export interface OpenAiCall extends Sending {
  readonly method: "GET" | "POST";
  /** Below the model's `openai/`: `v1/chat/completions`. */
  readonly path: string;
  readonly waitMs: number;
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

const hostLabel = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

type Leaving = AbortSignal | undefined;

export class UpstreamClient {
  readonly #upstream: Upstream;
  readonly #model: string;
  readonly #timed: (asked: Promise<Answered>) => Promise<Answered>;

  /** `timed` learns how long each call waited for the head of its answer. */
  constructor(upstream: Upstream, model: string, timed = (asked: Promise<Answered>) => asked) {
    this.#upstream = upstream;
    this.#model = model;
    this.#timed = timed;
  }

  get times(): Upstream["times"] {
    return this.#upstream.times;
  }

  get keySearch(): Upstream["keySearch"] {
    return this.#upstream.keySearch;
  }

  run(sending: Sending): Promise<Answered> {
    return this.#post(["run"], sending);
  }

  runsync(waitMs: number, sending: Sending): Promise<Answered> {
    return this.#post(["runsync"], { ...sending, query: `wait=${waitMs}`, waitMs });
  }

  status(id: string, signal?: Leaving, ttlMs?: number): Promise<Answered> {
    return this.#get(["status", id], {
      ...(signal && { signal }),
      ...(ttlMs !== undefined && { query: `ttl=${ttlMs}` }),
    });
  }

  statusSync(id: string, waitMs: number, signal: Leaving): Promise<Answered> {
    return this.#get(["status-sync", id], { query: `wait=${waitMs}`, waitMs, ...(signal && { signal }) });
  }

  /** A chunk is handed out once: a second try could lose what the first one took. */
  stream(id: string, waitMs: number, signal: Leaving): Promise<Answered> {
    return this.#get(["stream", id], { query: `wait=${waitMs}`, waitMs, ...(signal && { signal }), repeatable: false });
  }

  cancel(id: string): Promise<Answered> {
    return this.#post(["cancel", id], { repeatable: true });
  }

  retry(id: string): Promise<Answered> {
    return this.#post(["retry", id]);
  }

  numbers(operation: "health" | "metrics"): Promise<Answered> {
    return this.#get([operation]);
  }

  requests(offset: number, limit: number): Promise<Answered> {
    return this.#get(["requests"], { query: `offset=${offset}&limit=${limit}` });
  }

  purgeQueue(): Promise<Answered> {
    return this.#post(["purge-queue"]);
  }

  /** A list that is read may be read again. */
  openAi({ path, ...call }: OpenAiCall, repeatable = false): Promise<Answered> {
    return this.#ask(["openai", ...path.split("/")], { ...call, repeatable });
  }

  /** Where a load-balancing endpoint is called: beside the embedded platform's queues, or on a host of its own. */
  balancer(known: { readonly kind: string; readonly url?: string }) {
    const { base, keys, send } = this.#upstream;
    const way = { key: keys[0] ?? "", send };
    if (known.url === undefined) return { ...way, base: base.replace(/v2$/, `lb/${this.#model}`) };
    const { protocol, host } = new URL(known.url);
    const address = `${protocol}//${this.#model}.${host}`;
    if (hostLabel.test(this.#model) && URL.canParse(address)) return { ...way, base: address };
    throw new Problem("MODEL_NOT_FOUND", "An endpoint with this name has no address at the model service.");
  }

  #get(path: readonly string[], how: Partial<Call> = {}): Promise<Answered> {
    return this.#ask(path, { method: "GET", repeatable: true, ...how });
  }

  #post(path: readonly string[], how: Partial<Call> = {}): Promise<Answered> {
    return this.#ask(path, { method: "POST", repeatable: false, ...how });
  }

  #ask(path: readonly string[], how: Omit<Call, "segments">): Promise<Answered> {
    return this.#timed(callUpstream(this.#upstream, { ...how, segments: [this.#model, ...path] }));
  }
}
