// Calls to the queue: asked again when the object restarted, and held ones told when their caller left.
import { Problem } from "../errors.ts";
import type { Remote } from "../wire/remote.ts";
import type { EndpointQueue } from "./queue/endpoint-queue.ts";

type Stub = Remote<EndpointQueue>;

export interface Held {
  readonly queue: () => Stub;
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly waitUntil: (promise: Promise<unknown>) => void;
}

/** An object that does not come back after as many tries in a row is not restarting, it is broken. */
const maxTries = 8;
const pauseMs = 50;

/** For calls that mean the same when they are made twice. A stub that broke stays broken, so each try takes a new one. */
export async function ask<T>(queue: () => Stub, call: (stub: Stub) => Promise<T>, tries = maxTries): Promise<T> {
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
export function askOnce<T>(queue: () => Stub, call: (stub: Stub) => Promise<T>): Promise<T> {
  return ask(queue, call, 1);
}

export async function hold<T>(
  { queue, waitMs, signal, waitUntil }: Held,
  call: (stub: Stub, leftMs: number, ticket: string) => Promise<T>,
): Promise<T> {
  const deadline = Date.now() + waitMs;
  /** Never longer than at first: the clock may have been set back. */
  const leftMs = () => Math.min(waitMs, Math.max(0, deadline - Date.now()));
  const ticket = crypto.randomUUID();
  const leave = () => waitUntil(askOnce(queue, (stub) => stub.leave(ticket)).catch(() => {}));
  signal.addEventListener("abort", leave);
  const answer = ask(queue, (stub) => call(stub, leftMs(), ticket));
  // Without it the runtime drops everything the moment the caller leaves, before anybody hears of it.
  waitUntil(answer.catch(() => {}));
  try {
    return await answer;
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
