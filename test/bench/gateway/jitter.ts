// How steady the machine is: how late it comes to a thread that wants nothing but to be called every millisecond.
import { quantile } from "../statistics.ts";

export interface Jitter {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** On a machine that comes later than this, the slowest percent of the answers tells of the machine alone. */
const quietP99Ms = 0.5;

export async function probeJitter(durationMs: number): Promise<Jitter> {
  const late: number[] = [];
  const endsAt = performance.now() + durationMs;
  for (let at = performance.now(); at < endsAt; ) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    const now = performance.now();
    late.push(now - at - 1);
    at = now;
  }
  return { p50Ms: quantile(late, 0.5), p99Ms: quantile(late, 0.99) };
}

export function isQuiet({ p99Ms }: Jitter): boolean {
  return p99Ms <= quietP99Ms;
}

export function worstOf(jitters: readonly Jitter[]): Jitter {
  return {
    p50Ms: Math.max(...jitters.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...jitters.map(({ p99Ms }) => p99Ms)),
  };
}
