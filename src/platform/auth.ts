// Who calls the platform: an account, by one of its keys.
import type { MiddlewareHandler } from "hono";
import { Problem } from "../errors.ts";
import type { AppEnv } from "../wire/exchange.ts";
import { findByKey, readKey } from "../wire/keys.ts";

export interface PlatformEnv extends AppEnv {
  Variables: AppEnv["Variables"] & { account: string };
}

export const authenticate: MiddlewareHandler<PlatformEnv> = async (c, next) => {
  const key = readKey(c.req.raw.headers);
  const account = key && (await findByKey(key, c.get("config").platformKeys));
  if (!account) throw new Problem("UNAUTHORIZED", "invalid api key", { "WWW-Authenticate": "Bearer" });
  c.set("account", account);
  await next();
};
