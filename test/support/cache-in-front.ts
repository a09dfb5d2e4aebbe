// Stands in for the cache that Cloudflare keeps in front of a Worker, which the local runtime has not: it takes purges. What it
// would store is read off the answers.
import { createExecutionContext } from "cloudflare:test";

export class CacheInFront implements CacheContext {
  readonly purged: string[] = [];
  /** Purges to come are refused as often, as where there were too many. */
  refusals = 0;

  async purge({ tags = [] }: CachePurgeOptions): Promise<CachePurgeResult> {
    if (this.refusals > 0) {
      this.refusals -= 1;
      return { success: false, errors: [{ code: 10_429, message: "rate limited" }] };
    }
    this.purged.push(...tags);
    return { success: true, errors: [] };
  }

  invalidate(options: CachePurgeOptions): Promise<CachePurgeResult> {
    return this.purge(options);
  }
}

/** What a handler is given; without a cache as the local runtime has it. */
export function contextWith(cache: CacheInFront | undefined): ExecutionContext {
  const ctx = createExecutionContext();
  if (cache) Object.defineProperty(ctx, "cache", { value: cache });
  return ctx;
}
