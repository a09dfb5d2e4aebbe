// A job as the caller hears of it, from its submission to its end.
import { SluiceError } from "./errors.ts";

export type JobState = "IN_QUEUE" | "IN_PROGRESS" | "COMPLETED" | "FAILED" | "CANCELLED" | "TIMED_OUT";

/** A job that ended well. */
export interface Job<Output = unknown> {
  readonly id: string;
  readonly status: "COMPLETED";
  readonly output: Output;
  /** What it cost the caller, in USD; undefined where the gateway does not say. */
  readonly cost?: number | undefined;
  /** Milliseconds that it waited. */
  readonly delayTime?: number;
  /** Milliseconds that a worker took. */
  readonly executionTime?: number;
}

export interface Upload {
  /** Where the file stands in the input: `image`, `images.0`. */
  readonly field: string;
  readonly sentBytes: number;
  readonly totalBytes: number;
}

/** Called while a job goes on; none is called after its end, or once the call was aborted. */
export interface Listeners {
  /** `uploading` and `submitting` come before the gateway's own states. */
  readonly onState?: (state: "uploading" | "submitting" | JobState) => void;
  /** What a worker says of its progress. */
  readonly onProgress?: (progress: unknown) => void;
  /** A piece of a streamed output, each once, in order. */
  readonly onChunk?: (chunk: unknown) => void;
  /** The connection was lost, and pieces may be missing. The job's output is whole nevertheless. */
  readonly onGap?: () => void;
  readonly onUpload?: (upload: Upload) => void;
}

/** As the gateway tells it. */
export interface ToldJob {
  readonly id: string;
  readonly status: JobState;
  readonly output?: unknown;
  readonly error?: string;
}

export function isOver(status: JobState): boolean {
  return !status.startsWith("IN_");
}

/** The job, or its failure thrown. */
export function end<Output>(job: ToldJob, cost: number | undefined): Job<Output> {
  if (job.status !== "COMPLETED") {
    throw new SluiceError(`JOB_${job.status}`, job.error ?? `The job is ${job.status}.`, { job });
  }
  return { ...job, cost } as Job<Output>;
}
