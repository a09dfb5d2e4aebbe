// What an endpoint's queue needs to know of a public model. It is handed in, so that the queue imports no samples.
import type { PublicModel } from "./built-in-runs.ts";
import type { Queue } from "./queue.ts";
import type { WorkerCalls } from "./worker-calls.ts";

/** What the queue's object gives, once it is built. */
export interface RunnerDeps {
  readonly queue: () => Queue;
  readonly workers: () => WorkerCalls;
}

/** Undefined for an endpoint that only real workers serve. */
export type FindPublicModel = (ctx: DurableObjectState, env: Env, deps: RunnerDeps) => PublicModel | undefined;
