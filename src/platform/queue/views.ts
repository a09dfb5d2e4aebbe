// What an endpoint's queue answers: a job, a job for a worker, or a refusal that the routes turn into an error.
import type { ErrorCode } from "../../errors.ts";
import type { JobDescription } from "./job.ts";

export interface Refusal {
  readonly refused: ErrorCode;
  readonly detail: string;
  readonly retryAfterSeconds?: number;
}

export type Body = Uint8Array | ReadableStream<Uint8Array>;

/** A job as it is answered: its head, and its output's JSON. */
export interface JobView {
  readonly head: JobDescription;
  readonly output: Body | null;
}

export interface TakenJob {
  readonly id: string;
  /** The job request as it came, without its closing brace: the route adds the id. */
  readonly request: Body;
}

/** The endpoint was deleted, and this isolate does not know it yet. */
export const noEndpoint: Refusal = { refused: "ENDPOINT_NOT_FOUND", detail: "endpoint not found" };

export const noJob: Refusal = { refused: "JOB_NOT_FOUND", detail: "job not found" };

export const notHeld: Refusal = { refused: "JOB_NOT_HELD", detail: "this worker does not hold the job" };

/** A full queue stays full until jobs are done or removed. */
const fullSeconds = 10;

export const queueFull: Refusal = {
  refused: "QUEUE_FULL",
  detail: "the queue of this endpoint is full",
  retryAfterSeconds: fullSeconds,
};

/** What a job ends with whose output cannot be kept. */
export const noRoomError = "the output was not kept: the queue of this endpoint is full";

/** A worker that is told to slow down pauses by itself. */
export const tooManyWorkers: Refusal = {
  refused: "RATE_LIMITED",
  detail: "too many workers at this endpoint",
  retryAfterSeconds: fullSeconds,
};
