// Calls to a queue: repeated when its object restarts, and ended early when the caller of a long poll leaves.

import { answersWithinMs, repeated, timed } from "../durable/remote.ts";
import { Problem } from "../errors.ts";
import { TookTooLong } from "../isolate/in-time.ts";
import type { QueueStub } from "./queue/queue-calls.ts";

export interface LongPoll {
  readonly queue: () => QueueStub;
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly waitUntil: (promise: Promise<unknown>) => void;
}

/** Between the tries: an object that fails after all of them is not restarting, it is broken. */
const pausesMs: readonly number[] = [50, 100, 150, 200, 250, 300, 350];

type Call<T> = (stub: QueueStub) => Promise<T>;

const unreachable = new Problem("UNAVAILABLE", "the queue cannot be reached", { "Retry-After": "1" });
const noAnswer = new Problem("UNAVAILABLE", "the queue does not answer: what was asked may have been done", {
  "Retry-After": "1",
});
/** 503 says that no job was made: the gateway gives its price back then, and clients submit it once more. */
const mayHaveStarted = new Problem("UPSTREAM_TIMEOUT", "the queue does not answer: the job may have been started");

/** What a poll that follows its own submission is lost with. */
export const lostOfStarted = new Problem("UPSTREAM_TIMEOUT", "the queue cannot be reached: the job was started");

/** For calls that mean the same when they are made twice. A stub that broke stays broken, so each try takes a new one. */
export function callWithRetry<T>(queue: () => QueueStub, call: Call<T>): Promise<T> {
  return answered(() => call(limited(queue)), pausesMs, noAnswer);
}

/** For calls that must not be made twice. */
export function callOnce<T>(queue: () => QueueStub, call: Call<T>): Promise<T> {
  return answered(() => call(limited(queue)), [], noAnswer);
}

/** For the call that makes a job: the same one, with the same id, may be made twice. */
export function callToSubmit<T>(queue: () => QueueStub, call: Call<T>): Promise<T> {
  return answered(() => call(limited(queue)), pausesMs, mayHaveStarted);
}

/** For the call that starts a job anew, which must not be made twice. */
export function callToRestart<T>(queue: () => QueueStub, call: Call<T>): Promise<T> {
  return answered(() => call(limited(queue)), [], mayHaveStarted);
}

function limited(queue: () => QueueStub): QueueStub {
  return timed(queue(), answersWithinMs.needed);
}

async function answered<T>(
  ask: () => Promise<T>,
  pauses: readonly number[],
  tooLate: Problem,
  lost = unreachable,
): Promise<T> {
  try {
    return await repeated(ask, pauses);
  } catch (error) {
    console.warn(JSON.stringify({ queue: "no answer", error: error instanceof Error ? error.message : "unknown" }));
    throw error instanceof TookTooLong ? tooLate : lost;
  }
}

export async function longPoll<T>(
  { queue, waitMs, signal, waitUntil }: LongPoll,
  call: (stub: QueueStub, leftMs: number, ticket: string) => Promise<T>,
  lost = unreachable,
): Promise<T> {
  const deadline = Date.now() + waitMs;
  /** Never longer than at first: the clock may have been set back. */
  const leftMs = () => Math.min(waitMs, Math.max(0, deadline - Date.now()));
  const ticket = crypto.randomUUID();
  const leave = () => waitUntil(callOnce(queue, (stub) => stub.leave(ticket)).catch(() => {}));
  signal.addEventListener("abort", leave);
  const held = () => timed(queue(), leftMs() + answersWithinMs.needed);
  const answer = answered(() => call(held(), leftMs(), ticket), pausesMs, lost, lost);
  // Otherwise the runtime drops all work the moment the caller leaves, and the queue is never told.
  waitUntil(answer.catch(() => {}));
  try {
    return await answer;
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
