// How much an endpoint's queue holds, and one batch of it carries.
import type { JobRow } from "./job.ts";
import type { JobStore } from "./job-store.ts";
import type { Payload } from "./queue-calls.ts";

const bounds = { jobs: 250_000, bytes: 4 * 1024 ** 3 } as const;

/** Of the bytes. Those that wait may fill the bound: their results have half as much again. */
const resultsBound = 1.5;
/** A result that is larger than it said may flow in beyond that: its job fails, and its worker is told so. */
const flowingResultsBound = 2;

/** How much of requests one batch carries: a Worker holds 128 MB, and one call between objects 32 MiB. */
const batchBytes = 20 * 1024 * 1024;

export class QueueRoom {
  readonly #store: JobStore;

  constructor(store: JobStore) {
    this.#store = store;
  }

  isFull(moreBytes: number): boolean {
    return this.#store.totals.jobs >= bounds.jobs || !this.has(moreBytes);
  }

  /** For what flows in. */
  has(moreBytes: number, isResult = false): boolean {
    return this.#fits(moreBytes, isResult ? flowingResultsBound : 1);
  }

  /** Of what was uploaded the bytes are counted already. */
  keeps(output: Payload | null): boolean {
    return output === null || this.#fits(output instanceof Uint8Array ? output.byteLength : 0, resultsBound);
  }

  #fits(moreBytes: number, times: number): boolean {
    return this.#store.totals.bytes + this.#store.payloads.uploadedBytes + moreBytes <= times * bounds.bytes;
  }

  /** The first of those that wait: as many as a batch carries, and at least one. */
  ofOneBatch(waiting: readonly JobRow[]): readonly JobRow[] {
    let bytes = 0;
    const end = waiting.findIndex(({ input }, at) => {
      bytes += this.#store.payloads.size(input);
      return at > 0 && bytes > batchBytes;
    });
    return end < 0 ? waiting : waiting.slice(0, end);
  }
}
