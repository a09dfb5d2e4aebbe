// How steady the machine is: how late it comes to a thread that wants nothing but to be called every millisecond.
import { quantile } from "../statistics.ts";

const probeMs = 2000;

export async function probeJitter(durationMs = probeMs): Promise<{ p50Ms: number; p99Ms: number }> {
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
