// The calls that an endpoint's queue answers, and the words that both sides share.
import type { Health } from "../../contract/job.ts";
import type { RatedOperation } from "../../contract/rates.ts";
import type { JobState } from "../../contract/states.ts";
import { type Remote, remote } from "../../durable/remote.ts";
import type { EndpointSettings } from "./endpoint-settings.ts";
import type { ExecutedRow } from "./executed.ts";
import type { JobDescription } from "./job.ts";
import { queueName } from "./queue-name.ts";
import type { JobView, Refusal, TakenJob } from "./views.ts";

/** Bytes to be stored, or the upload that stored them already. */
export type Payload = Uint8Array | Upload;

export interface Upload {
  readonly upload: number;
  readonly size: number;
}

export interface Submission {
  readonly id: string;
  readonly sync: boolean;
  readonly waitMs: number;
  readonly lowPriority: boolean;
  readonly ttlMs: number;
  readonly executionTimeoutMs: number | null;
  readonly webhook: string | null;
  readonly origin: string;
  /** The request's bytes, or the upload that holds them. */
  readonly body: Payload;
  /** Where `input` lies in them. */
  readonly inputFrom: number;
  readonly inputTo: number;
}

/** What a worker reports. The output is JSON, or the upload that holds it. */
export interface JobOutcome {
  readonly error: string | null;
  readonly output: Payload | null;
}

/** Stream items as JSON, each handed out once. */
export interface StreamPart {
  readonly status: JobState;
  readonly items: string[];
}

export interface JobPage {
  readonly requests: JobDescription[];
  readonly total: number;
  readonly offset: number;
  readonly limit: number;
  readonly hasMore: boolean;
}

export type WaitOperation = "runsync" | "status" | "openai";
export type StreamOperation = "stream" | "openai";
export type CancelOperation = "cancel" | "openai";
export type UploadOperation = "run" | "runsync" | "done";

type JobStatus = { id: string; status: JobState };
type Done = { ok: true };

/** A `ticket` names a held call, so that `leave` can end it when its caller is gone. */
export interface QueueCalls {
  submit(submission: Submission, operation?: RatedOperation): { id: string } | Refusal;
  upload(operation: UploadOperation, body: ReadableStream<Uint8Array>): Promise<Upload | Refusal | undefined>;
  discard(upload: number): void;
  status(id: string, ttlMs: number | null): JobView | Refusal;
  wait(id: string, waitMs: number, ticket: string, operation: WaitOperation): Promise<JobView | Refusal>;
  stream(id: string, waitMs: number, ticket: string, operation?: StreamOperation): Promise<StreamPart | Refusal>;
  cancel(id: string, operation?: CancelOperation): JobStatus | Refusal;
  retry(id: string): JobStatus | Refusal;
  purge(): { removed: number } | Refusal;
  requests(offset: number, limit: number): JobPage | Refusal;
  health(): Health | Refusal;
  metrics(): { workers: Health["workers"]; readyWorkers: string[] } | Refusal;
  leave(ticket: string): void;

  // By workers.
  take(worker: string, ticket: string, count: number, holdMs: number): Promise<TakenJob[] | Refusal>;
  giveBack(worker: string, ids: readonly string[]): void;
  stops(worker: string, ticket: string, holdMs: number): Promise<string[] | Refusal>;
  ping(worker: string, jobs: readonly string[]): Done | Refusal;
  finish(worker: string, id: string, outcome: JobOutcome): Done | Refusal;
  report(worker: string, id: string, progress: JobOutcome["output"]): Done | Refusal;
  append(worker: string, id: string, chunk: unknown): Done | Refusal;
  restart(worker: string): void;

  // By the account that the endpoint belongs to.
  configure(settings: EndpointSettings): void;
  retire(): ExecutedRow[];
  wipe(): Promise<void>;
}

export type QueueStub = Remote<QueueCalls>;

export function queueOf(env: Pick<Env, "ENDPOINT_QUEUE">, account: string, endpoint: string): QueueStub {
  return remote(env.ENDPOINT_QUEUE, queueName(account, endpoint));
}
