// Who calls the platform: an account, by one of its keys.
import type { Config } from "../config.ts";
import { Problem } from "../errors.ts";
import { findByKey, readKey } from "../http/keys.ts";
import { BoundedMemory } from "../isolate/bounded-memory.ts";
import { memoizeBy } from "../isolate/memoize-by.ts";
import type { PlatformCall } from "./call.ts";
import type { Guard } from "./platform-route.ts";

/** A key that was compared once costs no cryptography. */
const verified = memoizeBy((_: Config) => new BoundedMemory<string>(1024 * 1024));

/** Sets the account, or answers 401. */
export const authenticate: Guard = (call) => {
  const key = readKey(call.request.headers);
  if (!key) throw refused();
  const known = verified(call.config).get(key, Date.now());
  return known ? admit(call, known) : compare(call, key);
};

async function compare(call: PlatformCall, key: string): Promise<void> {
  const account = await findByKey(key, call.config.platformKeys);
  if (!account) throw refused();
  verified(call.config).set(key, account, Number.POSITIVE_INFINITY);
  admit(call, account);
}

function admit(call: PlatformCall, account: string): void {
  call.account = account;
  call.exchange.owner = account;
}

function refused(): Problem {
  return new Problem("UNAUTHORIZED", "invalid api key", { "WWW-Authenticate": "Bearer" });
}
