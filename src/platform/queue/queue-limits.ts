// What limits an endpoint: the rates of the contract, raised by running workers, and the size of the queue.
import type { RatedOperation } from "../../contract/rates.ts";
import type { Queue } from "./queue.ts";
import { RateLimits } from "./rate-limits.ts";
import { noEndpoint, queueFull, type Refusal } from "./views.ts";

export class QueueLimits {
  readonly #queue: Queue;
  readonly #now: () => number;
  readonly #rates = new RateLimits();

  constructor(queue: Queue, now: () => number) {
    this.#queue = queue;
    this.#now = now;
  }

  /** Counts the request and says why it must not go on. `bytes` are what it would store. */
  refuse(operation: RatedOperation, bytes?: number): Refusal | undefined {
    const { requestsPerWorker, closed } = this.#queue.settings;
    if (closed) return noEndpoint;
    const verdict = this.#rates.admit(operation, this.#queue.report.runningWorkers(), requestsPerWorker, this.#now());
    if (verdict.allowed) return bytes !== undefined && this.#queue.room.isFull(bytes) ? queueFull : undefined;
    const { detail, retryAfterSeconds } = verdict;
    return { refused: "RATE_LIMITED", detail: `${operation}: ${detail}`, retryAfterSeconds };
  }

  /** Counts a request as under way until it enters to wait for its job; for a moment only, where it never does. */
  begin(operation: RatedOperation, job: string): void {
    this.#rates.begin(operation, job, this.#now());
  }

  /** Counts a request as under way until the returned function is called. */
  enter(operation: RatedOperation, job?: string): () => void {
    return this.#rates.enter(operation, job);
  }
}
