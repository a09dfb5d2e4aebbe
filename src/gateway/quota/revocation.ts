// A revocation counts at the meter at once, and not only when the isolates have read CONTROL.
import type { MiddlewareHandler } from "hono";
import * as z from "zod";
import type { GatewayEnv } from "../env.ts";
import { meterOf, orUnavailable } from "../meter-stub.ts";

/** What the revocation's own route answers. */
const revokedSchema = z.object({ user: z.string(), tokenId: z.string().optional(), revokedAt: z.iso.datetime() });
/** By then a revoked token has expired, or CONTROL alone refuses it. */
const tokenKeptMs = 30 * 24 * 60 * 60_000;

/** Stands around `/admin/users/:user/revoke`. An anonymous owner's payer is not known here: CONTROL refuses it. */
export const tellMeter: MiddlewareHandler<GatewayEnv> = async (c, next) => {
  await next();
  if (!c.res.ok) return;
  const { user, tokenId, revokedAt } = revokedSchema.parse(await c.res.clone().json());
  const at = Date.parse(revokedAt);
  const token = tokenId === undefined ? undefined : { id: tokenId, expiresAt: at + tokenKeptMs };
  await orUnavailable(meterOf(c.env, user).revoke(user, at, token));
};
