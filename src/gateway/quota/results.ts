// Final results that a meter fetched for owners who do not follow their jobs.
import { limits } from "../../contract/limits.ts";

/** A handle proves whose the admission is, so the key says it no more. */
export function resultKey(admission: string): string {
  return `result/${admission}`;
}

/** Comfort: a result that cannot be kept costs nobody money. */
export async function keepResult(store: KVNamespace, admission: string, body: string): Promise<void> {
  try {
    await store.put(resultKey(admission), body, { expirationTtl: limits.mediaLifetimeMs / 1000 });
  } catch {
    console.warn(JSON.stringify({ binding: "IMAGES", problem: "a result was not kept", admission }));
  }
}
