// Calls that the queue holds: asked again when the object restarted, told when the caller left.
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

export async function hold<T>(
  held: Held,
  call: (stub: Stub, leftMs: number, ticket: string) => Promise<T>,
): Promise<T> {
  const deadline = Date.now() + held.waitMs;
  const ticket = crypto.randomUUID();
  const leave = () => held.waitUntil(held.queue().leave(ticket));
  held.signal.addEventListener("abort", leave);
  try {
    for (let tries = 1; ; tries++) {
      try {
        return await call(held.queue(), Math.max(0, deadline - Date.now()), ticket);
      } catch (error) {
        if (tries === maxTries) throw new Problem("UNAVAILABLE", "the queue cannot be reached", { "Retry-After": "1" });
        console.warn(JSON.stringify({ held: "asked again", error: error instanceof Error ? error.name : "unknown" }));
        await scheduler.wait(pauseMs * tries);
      }
    }
  } finally {
    held.signal.removeEventListener("abort", leave);
  }
}
