// The workers of a load-balancing endpoint as an isolate knows them: asked by ping while callers come, chosen by what each has
// in hand.
import { nameOfFault } from "../../errors.ts";
import { isRecent } from "../../isolate/recent.ts";

export interface Worker {
  readonly url: string;
  /** What callers know it by. */
  readonly id: string;
  isHealthy: boolean;
  /** A call of it broke, which may be its caller's doing: until the next ping it is chosen last. */
  isSuspect: boolean;
  /** This isolate's own requests. */
  inFlight: number;
  served: number;
}

/** Which worker a caller wants. */
export interface Affinity {
  readonly worker: string;
  readonly strict: boolean;
}

/** What pings said counts for so long. */
const knownMs = 5_000;
/** Asked again before that has passed: a caller that comes all the time waits for no ping. */
const renewMs = 2_500;
/** While nobody is healthy. */
const waitingMs = 1_000;
const pingMs = 2_000;

export class Pool {
  readonly #secret: string;
  #workers: readonly Worker[] = [];
  #askedAt = Number.NEGATIVE_INFINITY;
  #knownAt = Number.NEGATIVE_INFINITY;

  /** Without the secret nobody finds a worker's address by its id. */
  constructor(secret: string) {
    this.#secret = secret;
  }

  isKnown(now: number): boolean {
    return isRecent(this.#knownAt, knownMs, now);
  }

  /** Nobody has asked for a while. A caller that asks and dies of it keeps the others waiting no longer than that. */
  isDue(now: number): boolean {
    const isServed = this.#workers.some(({ isHealthy }) => isHealthy);
    return !isRecent(this.#askedAt, isServed ? renewMs : waitingMs, now);
  }

  /** Asks every worker how it is. Rejects with what `find` does. */
  async renew(find: () => Promise<readonly string[]>): Promise<void> {
    this.#askedAt = Date.now();
    const urls = await find();
    this.#workers = await Promise.all(urls.map((url) => this.#pinged(url)));
    this.#knownAt = Date.now();
  }

  /** 200 is healthy, 204 starting; anything else is neither, nor is no answer. */
  async #pinged(url: string): Promise<Worker> {
    const known = this.#workers.find((worker) => worker.url === url);
    const worker = known ?? {
      url,
      id: await this.#idOf(url),
      isHealthy: false,
      isSuspect: false,
      inFlight: 0,
      served: 0,
    };
    try {
      const signal = AbortSignal.timeout(pingMs);
      const response = await fetch(`${url}/ping`, { redirect: "manual", cache: "no-store", signal });
      worker.isHealthy = response.status === 200;
      worker.isSuspect = false;
      await response.body?.cancel();
    } catch (error) {
      if (worker.isHealthy) console.warn(JSON.stringify({ worker: worker.id, ping: nameOfFault(error) }));
      worker.isHealthy = false;
    }
    return worker;
  }

  async #idOf(url: string): Promise<string> {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`${this.#secret}\n${url}`));
    return new Uint8Array(digest, 0, 7).toHex();
  }

  has(id: string): boolean {
    return this.#workers.some((worker) => worker.id === id);
  }

  /** The one that the caller wants, else the one with the fewest requests in hand. */
  choose(affinity: Affinity | undefined): Worker | undefined {
    const healthy = this.#workers.filter(({ isHealthy }) => isHealthy);
    const wanted = affinity && healthy.find(({ id }) => id === affinity.worker);
    if (wanted || affinity?.strict) return wanted;
    return healthy.toSorted(byLoad)[0];
  }
}

function byLoad(one: Worker, other: Worker): number {
  return Number(one.isSuspect) - Number(other.isSuspect) || one.inFlight - other.inFlight || one.served - other.served;
}
