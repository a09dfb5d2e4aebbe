// The server's keys for the upstream: what nothing that leaves may say.
import type { Config } from "../config.ts";
import { oncePer } from "../wire/once-per.ts";
import { SecretSearch } from "../wire/secret-search.ts";

/** Looks for every key that the configuration has, also one that is on its way out. */
export const keySearchOf: (config: Config) => SecretSearch = oncePer(
  ({ upstreamKeys, management }) => new SecretSearch([...upstreamKeys, ...(management?.keys ?? [])]),
);

/** What the operator must know: who says a key to one caller may say it to others. */
export function logOwnKey(): void {
  console.error(JSON.stringify({ upstream: "answered with our key", setting: "UPSTREAM_API_KEY" }));
}

/** It does not know the key, or not any more. */
export function refusesKey({ status }: Response): boolean {
  return status === 401 || status === 403;
}
