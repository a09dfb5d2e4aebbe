// `/tokens`: what the app's backend may ask for, with the secret that it alone holds.
import * as z from "zod";
import { Problem } from "../../errors.ts";
import { maxKeyLength, readKey, sameKey } from "../../http/keys.ts";
import { type Guard, gatewayRoute } from "../gateway-route.ts";
import { demandKnown } from "../operator-settings/known-names.ts";
import { unauthorized } from "./refused-token.ts";
import { issuedSchema } from "./sessions.ts";
import { signingKeysOf } from "./signing.ts";
import { mintSchema, mintToken } from "./tokens.ts";

/** Without an APP_SECRET there is no backend, and no such route. */
const appOnly: Guard = async ({ config, request }) => {
  const { appSecret } = config;
  if (appSecret === undefined) throw new Problem("NOT_FOUND", "There is no such route.");
  const key = readKey(request.headers);
  if (!key || !(await sameKey(key, appSecret))) throw unauthorized("The app's secret is needed.");
};

export const mintingRoutes = [
  gatewayRoute(
    {
      method: "post",
      path: "/tokens",
      summary: "A token for one of the app's users",
      access: "app",
      json: mintSchema,
      answer: issuedSchema,
      errors: ["UNAUTHORIZED", "NOT_FOUND", "CONTROL_UNAVAILABLE"],
    },
    [appOnly],
    async (call, { json: asked }) => {
      const { config, exchange } = call;
      await demandKnown(call, asked);
      const { token, expiresAt } = await mintToken(signingKeysOf(config), asked, exchange.startedAt);
      if (token.length > maxKeyLength) throw new Problem("INVALID_REQUEST", "The token would be too long to be sent.");
      const { user, plan = config.defaultPlan } = asked;
      return Response.json({ token, user, plan, expiresAt: new Date(expiresAt).toISOString() });
    },
  ),
  gatewayRoute(
    {
      method: "get",
      path: "/tokens/webhook-secret",
      summary: "What the backend verifies webhooks with",
      access: "app",
      answer: z.object({ secret: z.string() }),
      errors: ["UNAUTHORIZED", "NOT_FOUND"],
    },
    [appOnly],
    async ({ config }) => {
      const [secret] = await signingKeysOf(config).webhookSecrets();
      return Response.json({ secret });
    },
  ),
];
