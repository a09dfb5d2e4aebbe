// What an answer waited for, as `Server-Timing` says it: names of ours and milliseconds, and nothing of a request.
import type { Exchange } from "./exchange.ts";

/** In the order in which they are waited for. A step that was not waited for is not said. */
export const steps = ["identity", "kv", "meter", "upstream"] as const;
export type Step = (typeof steps)[number];

type Timed = Pick<Exchange, "waitedMs">;

/**
 * Calls of one step add up. The clock stands still between two answers from outside, and costs next to nothing. The
 * time is noted before the caller's `await` goes on, since this handler is the first.
 */
export function timed<T>(exchange: Timed, step: Step, work: Promise<T>): Promise<T> {
  const startedAt = Date.now();
  const note = () => {
    exchange.waitedMs ??= {};
    exchange.waitedMs[step] = (exchange.waitedMs[step] ?? 0) + Math.max(0, Date.now() - startedAt);
  };
  work.then(note, note);
  return work;
}

export function serverTiming({ waitedMs, startedAt }: Timed & Pick<Exchange, "startedAt">): string {
  const total = `total;dur=${Date.now() - startedAt}`;
  if (!waitedMs) return total;
  let said = "";
  for (const step of steps) if (waitedMs[step] !== undefined) said += `${step};dur=${waitedMs[step]}, `;
  return said + total;
}
