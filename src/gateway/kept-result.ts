// Final results that a meter's alarm fetched for an owner who did not ask in time.
import { limits } from "../contract/limits.ts";

/** A handle proves whose the admission is, so the key need not say it. */
export function resultKey(admission: string): string {
  return `result/${admission}`;
}

export function keptResult(kept: KVNamespace, admission: string): Promise<string | null> {
  return kept.get(resultKey(admission)).catch(() => null);
}

/** Comfort: a result that cannot be kept costs nobody money. */
export async function keepResult(kept: KVNamespace, admission: string, body: string): Promise<void> {
  try {
    await kept.put(resultKey(admission), body, { expirationTtl: limits.mediaLifetimeMs / 1000 });
  } catch {
    console.warn(JSON.stringify({ binding: "IMAGES", problem: "a result was not kept", admission }));
  }
}
