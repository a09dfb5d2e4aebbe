// Work that goes on when its client has left: what was reserved is bound, settled or freed all the same.
import type { Context } from "hono";
import type { JobEnv } from "./target.ts";

export function outlive<T>(c: Context<JobEnv>, work: Promise<T>): Promise<T> {
  c.executionCtx.waitUntil(work.catch(() => {}));
  return work;
}
