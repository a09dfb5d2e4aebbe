// Calls to a queue: repeated when its object restarts, and ended early when the caller of a long poll leaves.

import { Problem } from "../errors.ts";
import type { QueueStub } from "./queue/queue-calls.ts";

export interface LongPoll {
  readonly queue: () => QueueStub;
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly waitUntil: (promise: Promise<unknown>) => void;
}

/** An object that fails so many times in a row is not restarting, it is broken. */
const maxTries = 8;
const pauseMs = 50;

/** For calls that mean the same when they are made twice. A stub that broke stays broken, so each try takes a new one. */
export async function callWithRetry<T>(
  queue: () => QueueStub,
  call: (stub: QueueStub) => Promise<T>,
  tries = maxTries,
): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await call(queue());
    } catch (error) {
      console.warn(JSON.stringify({ queue: "no answer", error: error instanceof Error ? error.message : "unknown" }));
      if (tried >= tries) throw new Problem("UNAVAILABLE", "the queue cannot be reached", { "Retry-After": "1" });
      await scheduler.wait(pauseMs * tried);
    }
  }
}

/** For calls that must not be made twice. */
export function callOnce<T>(queue: () => QueueStub, call: (stub: QueueStub) => Promise<T>): Promise<T> {
  return callWithRetry(queue, call, 1);
}

export async function longPoll<T>(
  { queue, waitMs, signal, waitUntil }: LongPoll,
  call: (stub: QueueStub, leftMs: number, ticket: string) => Promise<T>,
): Promise<T> {
  const deadline = Date.now() + waitMs;
  /** Never longer than at first: the clock may have been set back. */
  const leftMs = () => Math.min(waitMs, Math.max(0, deadline - Date.now()));
  const ticket = crypto.randomUUID();
  const leave = () => waitUntil(callOnce(queue, (stub) => stub.leave(ticket)).catch(() => {}));
  signal.addEventListener("abort", leave);
  const answer = callWithRetry(queue, (stub) => call(stub, leftMs(), ticket));
  // Otherwise the runtime drops all work the moment the caller leaves, and the queue is never told.
  waitUntil(answer.catch(() => {}));
  try {
    return await answer;
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
