// What an endpoint's queue says to its callers: a job, a job for a worker, or a refusal that the routes turn into an error.
import type { ErrorCode } from "../../errors.ts";
import type { describeJob } from "./job.ts";

export interface Refusal {
  readonly refused: ErrorCode;
  readonly detail: string;
  readonly retryAfterSeconds?: number;
}

export type Body = Uint8Array | ReadableStream<Uint8Array>;

/** A job as it is answered: its head, and its output's JSON. */
export interface JobView {
  readonly head: ReturnType<typeof describeJob>;
  readonly output: Body | null;
}

export interface TakenJob {
  readonly id: string;
  /** The job request as it came, without its closing brace: whoever sends it adds the id. */
  readonly request: Body;
}

/** It was deleted, and an isolate has not heard of it yet. */
export const noEndpoint: Refusal = { refused: "ENDPOINT_NOT_FOUND", detail: "endpoint not found" };

export const noJob: Refusal = { refused: "JOB_NOT_FOUND", detail: "job not found" };

export const notHeld: Refusal = { refused: "JOB_NOT_HELD", detail: "this worker does not hold the job" };

/** A queue that is full stays so until jobs were worked off or forgotten. */
const fullSeconds = 10;

export const queueFull: Refusal = {
  refused: "QUEUE_FULL",
  detail: "the queue of this endpoint is full",
  retryAfterSeconds: fullSeconds,
};

/** A worker that is told to slow down pauses by itself. */
export const tooManyWorkers: Refusal = {
  refused: "RATE_LIMITED",
  detail: "too many workers at this endpoint",
  retryAfterSeconds: fullSeconds,
};
