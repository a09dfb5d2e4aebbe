// A job's life: its states as a table, when it is due for attention, and how it looks from outside.
import { limits } from "../../contract/limits.ts";
import { isFinal, type JobState } from "../../contract/states.ts";

export type JobEvent =
  | "taken"
  /** The worker that took it left before the job reached it. */
  | "returned"
  | "completed"
  | "failed"
  | "overran"
  /** Its worker was not heard of, for the first time. */
  | "lost"
  /** … for the second time. */
  | "abandoned"
  | "cancelled"
  | "retried"
  | "purged"
  /** Its ttl has passed. */
  | "expired"
  /** Its result was kept long enough. */
  | "forgotten";

/** A missing entry is a refused move. */
export const moves: Record<JobState, Partial<Record<JobEvent, JobState | "deleted">>> = {
  IN_QUEUE: { taken: "IN_PROGRESS", cancelled: "CANCELLED", purged: "deleted", expired: "deleted" },
  IN_PROGRESS: {
    completed: "COMPLETED",
    failed: "FAILED",
    overran: "TIMED_OUT",
    cancelled: "CANCELLED",
    returned: "IN_QUEUE",
    lost: "IN_QUEUE",
    abandoned: "FAILED",
    expired: "deleted",
  },
  COMPLETED: { expired: "deleted", forgotten: "deleted" },
  FAILED: { retried: "IN_QUEUE", expired: "deleted", forgotten: "deleted" },
  TIMED_OUT: { retried: "IN_QUEUE", expired: "deleted", forgotten: "deleted" },
  CANCELLED: { expired: "deleted", forgotten: "deleted" },
};

/** Times are in milliseconds; `input` and `output` name payloads. */
export interface JobRow extends Record<string, SqlStorageValue> {
  key: number;
  id: string;
  status: JobState;
  position: number;
  lowPriority: number;
  submittedAt: number;
  queuedAt: number;
  takenAt: number | null;
  finishedAt: number | null;
  ttlMs: number;
  executionTimeoutMs: number | null;
  retentionMs: number;
  webhook: string | null;
  /** Where the platform was called: media links are made with it, and notices to it stay inside the Worker. */
  origin: string;
  worker: string | null;
  retries: number;
  error: string | null;
  input: number;
  inputFrom: number;
  inputTo: number;
  output: number | null;
  dueAt: number;
  /** Set by a restart, until its worker is heard of: when the job counts as lost. */
  lostAt: number | null;
}

/** How an event changes the times of a job. */
export function effectsOf(event: JobEvent, now: number): Partial<JobRow> {
  switch (event) {
    case "taken":
      return { takenAt: now };
    case "returned":
    case "lost":
      return { takenAt: null, worker: null, lostAt: null };
    case "retried":
      return { takenAt: null, worker: null, finishedAt: null, queuedAt: now, error: null, retries: 0, lostAt: null };
    default:
      return { finishedAt: now };
  }
}

/** Which of the totals an event adds to. */
export function countsOf(event: JobEvent): { completed?: 1; failed?: 1; retried?: 1 } {
  if (event === "completed") return { completed: 1 };
  if (event === "failed" || event === "overran" || event === "abandoned") return { failed: 1 };
  if (event === "retried" || event === "lost") return { retried: 1 };
  return {};
}

export const overranError = "executionTimeout exceeded";
export const abandonedError = "job timed out after 1 retries";

/** The timer that rings first, and the event that it means. The ttl wins a tie, since it deletes the job. */
export function nextTimer(job: JobRow, executionTimeoutMs: number): { at: number; event: JobEvent } {
  const expiry = { at: job.submittedAt + job.ttlMs, event: "expired" as const };
  const other = otherTimer(job, executionTimeoutMs);
  return other && other.at < expiry.at ? other : expiry;
}

function otherTimer(job: JobRow, executionTimeoutMs: number): { at: number; event: JobEvent } | undefined {
  if (job.status === "IN_PROGRESS" && job.takenAt !== null) {
    return { at: job.takenAt + (job.executionTimeoutMs ?? executionTimeoutMs), event: "overran" };
  }
  if (isFinal(job.status) && job.finishedAt !== null) {
    return { at: job.finishedAt + job.retentionMs, event: "forgotten" };
  }
  return undefined;
}

/** After `/runsync` a result is kept as long as its caller was ready to wait, within the contract's bounds. */
export function retentionMs(sync: boolean, waitMs: number): number {
  if (!sync) return limits.runRetentionMs;
  const { min, max } = limits.runsyncRetentionMs;
  return Math.min(Math.max(waitMs, min), max);
}

export function newJobId(sync: boolean): string {
  return `${sync ? "sync-" : ""}${crypto.randomUUID()}-s1`;
}

export type JobDescription = ReturnType<typeof describeJob>;

/** A status answer without its output. Times of a job that waits or runs are counted up to now. */
export function describeJob(job: JobRow, now: number) {
  const delayTime = Math.max(0, (job.takenAt ?? job.finishedAt ?? now) - job.queuedAt);
  const executionTime = job.takenAt === null ? 0 : Math.max(0, (job.finishedAt ?? now) - job.takenAt);
  return {
    id: job.id,
    status: job.status,
    delayTime,
    ...(job.status !== "IN_QUEUE" && { executionTime }),
    ...(job.worker !== null && job.status !== "IN_QUEUE" && { workerId: job.worker }),
    ...(job.retries > 0 && { retries: job.retries }),
    ...(job.error !== null && { error: job.error }),
  };
}

export function isHeldBy(job: JobRow, worker: string): boolean {
  return job.status === "IN_PROGRESS" && job.worker === worker;
}
