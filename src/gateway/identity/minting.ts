// `/tokens`: what the app's backend may ask for, with the secret that it alone holds.

import { Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { Problem } from "../../errors.ts";
import { bodyErrors } from "../../wire/body-problem.ts";
import { maxKeyLength, readKey, sameKey } from "../../wire/keys.ts";
import { readSmallJson } from "../../wire/small-body.ts";
import { behind, type Guard } from "../behind.ts";
import type { GatewayEnv } from "../env.ts";
import { demandKnown } from "../known-names.ts";
import { signingKeysOf } from "../signing.ts";
import { unauthorized } from "./refused-token.ts";
import { issuedSchema } from "./sessions.ts";
import { mintSchema, mintToken } from "./tokens.ts";

/** Without an APP_SECRET there is no backend, and no such route. */
const appOnly: Guard<GatewayEnv> = async (c) => {
  const { appSecret } = c.get("config");
  if (appSecret === undefined) throw new Problem("NOT_FOUND", "There is no such route.");
  const key = readKey(c.req.raw.headers);
  if (!key || !(await sameKey(key, appSecret))) throw unauthorized("The app's secret is needed.");
};

export const minting = new Hono<GatewayEnv>()
  .post("/tokens", behind<GatewayEnv>(appOnly), async (c) => {
    const config = c.get("config");
    const request = await readSmallJson(c.req.raw, mintSchema);
    await demandKnown(c, request);
    const { token, expiresAt } = await mintToken(signingKeysOf(config), request, c.get("exchange").startedAt);
    if (token.length > maxKeyLength) throw new Problem("INVALID_REQUEST", "The token would be too long to be sent.");
    const { user, plan = config.defaultPlan } = request;
    return c.json({ token, user, plan, expiresAt: new Date(expiresAt).toISOString() });
  })
  .get("/tokens/webhook-secret", behind<GatewayEnv>(appOnly), async (c) => {
    const [secret] = await signingKeysOf(c.get("config")).webhookSecrets();
    return c.json({ secret });
  });

export const mintingOperations: readonly Operation[] = [
  {
    method: "post",
    path: "/tokens",
    summary: "A token for one of the app's users",
    access: "app",
    body: mintSchema,
    answer: issuedSchema,
    errors: [...bodyErrors, "INVALID_REQUEST", "UNAUTHORIZED", "NOT_FOUND", "CONTROL_UNAVAILABLE"],
  },
  {
    method: "get",
    path: "/tokens/webhook-secret",
    summary: "What the backend verifies webhooks with",
    access: "app",
    answer: z.object({ secret: z.string() }),
    errors: ["UNAUTHORIZED", "NOT_FOUND"],
  },
];
