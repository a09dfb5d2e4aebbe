// One request to an endpoint, by a client or by a worker.
import { Problem } from "../errors.ts";
import { PlatformCall } from "./call.ts";
import { platformRoutesFor } from "./platform-route.ts";
import { type QueueStub, queueOf } from "./queue/queue-calls.ts";
import type { LongPoll } from "./queue-client.ts";

/** Nothing else was ever a job's id: any other text is answered as a job that is gone. */
const jobId = /^[\w-]{1,128}$/;

export class EndpointCall extends PlatformCall {
  get endpoint(): string {
    return this.params["endpoint"] ?? "";
  }

  /** The endpoint's queue. A stub is made anew for each call, since one that broke stays broken. */
  readonly queue = (): QueueStub => queueOf(this.env, this.account, this.endpoint);

  /** The job that the path names, or 404. */
  get job(): string {
    const job = this.params["job"] ?? "";
    if (!jobId.test(job)) throw new Problem("JOB_NOT_FOUND", "job not found");
    return job;
  }

  /** How a call to the queue is held: until its time is over, or the client leaves. */
  heldFor(waitMs: number): LongPoll {
    const { queue, request } = this;
    return { queue, waitMs, signal: request.signal, waitUntil: (work) => this.waitUntil(work) };
  }
}

export const endpointRoute = platformRoutesFor((c) => new EndpointCall(c));
export const endpointPath = "/platform/v2/:endpoint";
