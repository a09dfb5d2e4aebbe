// `/admin/users/:user/revoke`: what was issued to a user so far, or one token, counts no longer.
import * as z from "zod";
import { gatewayRoute } from "../gateway-route.ts";
import { isUserId, readOwner } from "../identity/owners.ts";
import { askControl } from "../operator-settings/control-reader.ts";
import { meterOf, orUnavailable } from "../quota/meter-stub.ts";

/** How long a token's revocation is kept where the operator does not say; our own tokens live a day at most. */
const tokenRevocationMs = 30 * 24 * 60 * 60_000;

const userParam = z.object({ user: z.string().refine(isUserId, "expected a user's id") });
const revokeSchema = z
  .strictObject({
    tokenId: z.string().refine(isUserId, "expected a token's jti").optional().describe("Only the token with this jti."),
    expiresAt: z.iso.datetime().optional().describe("When that token expires by itself. Without it, in 30 days."),
  })
  .meta({ id: "RevokeRequest" });
const revokedSchema = z
  .object({ user: z.string(), tokenId: z.string().optional(), revokedAt: z.iso.datetime() })
  .meta({ id: "Revoked" });

/** It stands behind `operatorOnly`. */
export const revocationRoutes = [
  gatewayRoute(
    {
      method: "post",
      path: "/admin/users/:user/revoke",
      summary: "Revoke what was issued to a user so far, or one token",
      access: "operator",
      params: userParam,
      json: revokeSchema,
      answer: revokedSchema,
      errors: ["UNAUTHORIZED", "CONTROL_UNAVAILABLE", "METER_UNAVAILABLE"],
    },
    [],
    async ({ env, exchange }, { params, json: { tokenId, expiresAt } }) => {
      const user = readOwner(params.user);
      const now = exchange.startedAt;
      const until = expiresAt ? Date.parse(expiresAt) : now + tokenRevocationMs;
      await askControl(env, (control) =>
        tokenId === undefined ? control.revokeUser(user, now) : control.revokeToken(tokenId, until, now),
      );
      // The meter refuses at once, before the isolates have read CONTROL. An anonymous owner's payer is not known here.
      const token = tokenId === undefined ? undefined : { id: tokenId, expiresAt: now + tokenRevocationMs };
      await orUnavailable(meterOf(env, user).revoke(user, now, token));
      return Response.json({ user, ...(tokenId && { tokenId }), revokedAt: new Date(now).toISOString() });
    },
  ),
];
