// The server's keys for the upstream: what nothing that leaves may say.
import type { Config } from "../../config.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";
import { SecretSearch } from "../../json/secret-search.ts";

/** Looks for every key that the configuration has, also one that is on its way out. */
export const keySearchOf: (config: Config) => SecretSearch = memoizeBy(
  ({ upstreamKeys, management }) => new SecretSearch([...upstreamKeys, ...(management?.keys ?? [])]),
);

/** What the operator must know: who says a key to one caller may say it to others. */
export function logOwnKey(): void {
  console.error(JSON.stringify({ upstream: "answered with our key", setting: "UPSTREAM_API_KEY" }));
}

/** Our key is wrong or our account is, which is our fault: the caller learns no more than that. */
export function logRefusedKey(status: number, reason?: string): void {
  console.error(JSON.stringify({ upstream: refusalOf(status), status, reason, setting: "UPSTREAM_API_KEY" }));
}

/** What the operator reads of it, there and in the selfcheck. Undefined where the status is no refusal of the gateway. */
export function refusalOf(status: number): string | undefined {
  if (status === 402) return "wants to be paid";
  return status === 401 || status === 403 ? "refused our key" : undefined;
}

/** It does not know the key, or not any more: an older one may still do. */
export function refusesKey({ status }: Response): boolean {
  return status === 401 || status === 403;
}
