// Who calls the platform: an account, by one of its keys.
import type { Config } from "../config.ts";
import { Problem } from "../errors.ts";
import { findByKey, readKey } from "../http/keys.ts";
import { BoundedMemory } from "../isolate/bounded-memory.ts";
import { memoizeBy } from "../isolate/memoize-by.ts";
import type { Guard } from "./platform-route.ts";

/** A key that was compared once costs no cryptography. */
const verified = memoizeBy((_: Config) => new BoundedMemory<string>(1024 * 1024));

/** Sets the account, or answers 401. */
export const authenticate: Guard = async (call) => {
  const { config } = call;
  const key = readKey(call.request.headers);
  const known = key && verified(config).get(key, Date.now());
  const account = known || (key && (await findByKey(key, config.platformKeys)));
  if (!account) throw new Problem("UNAUTHORIZED", "invalid api key", { "WWW-Authenticate": "Bearer" });
  if (key && !known) verified(config).set(key, account, Number.POSITIVE_INFINITY);
  call.account = account;
  call.exchange.owner = account;
};
