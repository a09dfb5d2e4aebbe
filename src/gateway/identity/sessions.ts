// `POST /sessions`: a visitor that nobody knows gets an identity of its own, and the quota of its address.

import { Hono } from "hono";
import * as z from "zod";
import type { Config } from "../../config.ts";
import type { Operation } from "../../contract/operation.ts";
import { Problem } from "../../errors.ts";
import { bodyErrors } from "../../wire/body-problem.ts";
import { readSmallJson } from "../../wire/small-body.ts";
import type { GatewayContext, GatewayEnv } from "../env.ts";
import { anonymousOwner } from "../owners.ts";
import { signingKeysOf } from "../signing.ts";
import { addressPayer } from "./address.ts";
import type { IdentifyCaller } from "./authenticate.ts";
import { anonymousIsOff, mintSession } from "./session-token.ts";
import { isOurHost, verifyTurnstile } from "./turnstile.ts";

const maxResponseLength = 2048;
const localAddress = "127.0.0.1";

const bodySchema = z
  .strictObject({
    turnstile: z.string().min(1).max(maxResponseLength).optional().describe("The widget's response, where one is due."),
  })
  .meta({ id: "SessionRequest" });

export const issuedSchema = z
  .object({ token: z.string(), user: z.string(), plan: z.string(), expiresAt: z.iso.datetime() })
  .meta({ id: "IssuedToken" });

/**
 * A session that is still good is renewed: its jobs and pictures stay its own, and whoever pays for them pays on, wherever
 * the visitor is by now. It gives no new quota either way.
 */
export function sessionRoutes(identifyCaller: IdentifyCaller): Hono<GatewayEnv> {
  return new Hono<GatewayEnv>().post("/sessions", async (c) => {
    const config = c.get("config");
    if (config.anonymous === "off") throw anonymousIsOff();
    const { turnstile } = await readSmallJson(c.req.raw, bodySchema);
    const address = c.req.header("CF-Connecting-IP") ?? (config.local ? localAddress : undefined);
    const payer = address && addressPayer(address);
    if (!payer) throw new Problem("FORBIDDEN", "The address that the request comes from is not known.");
    if (config.anonymous === "turnstile") await demandTurnstile(config, turnstile, address, c.req.url);
    const visitor = (await visitorSoFar(c, identifyCaller)) ?? { owner: anonymousOwner(randomHex()), payer };
    const { token, expiresAt } = await mintSession(signingKeysOf(config), visitor, c.get("exchange").startedAt);
    return c.json({
      token,
      user: visitor.owner,
      plan: config.sessionPlan,
      expiresAt: new Date(expiresAt).toISOString(),
    });
  });
}

/** Whatever else the caller holds, or held, is no reason to refuse a session that anybody may have. */
async function visitorSoFar(
  c: GatewayContext,
  identifyCaller: IdentifyCaller,
): Promise<{ owner: string; payer: string } | undefined> {
  if (!c.req.header("Authorization")) return undefined;
  try {
    const { kind, owner, payer } = (await identifyCaller(c)).principal;
    return kind === "anonymous" ? { owner, payer } : undefined;
  } catch (error) {
    if (error instanceof Problem && error.status < 500) return undefined;
    throw error;
  }
}

async function demandTurnstile(
  config: Config,
  response: string | undefined,
  address: string | undefined,
  url: string,
): Promise<void> {
  if (!response || !config.turnstileSecret) throw new Problem("TURNSTILE_FAILED", "A Turnstile response is needed.");
  const isOurs = (hostname: string) => isOurHost(hostname, config, url);
  const challenge = { secret: config.turnstileSecret, response, address, isOurs };
  const verdict = await verifyTurnstile(challenge, (request) => fetch(request));
  if (verdict === "failed") throw new Problem("TURNSTILE_FAILED", "The Turnstile response is not accepted.");
  if (verdict === "unavailable") throw new Problem("TURNSTILE_UNAVAILABLE", "Turnstile cannot be asked.", retrySoon);
}

const retrySoon = { "Retry-After": "5" };

function randomHex(): string {
  return crypto.randomUUID().replaceAll("-", "");
}

export const sessionOperations: readonly Operation[] = [
  {
    method: "post",
    path: "/sessions",
    summary: "An identity for a visitor who is not signed in",
    access: "public",
    body: bodySchema,
    answer: issuedSchema,
    errors: [
      ...bodyErrors,
      "INVALID_REQUEST",
      "ANONYMOUS_OFF",
      "TURNSTILE_FAILED",
      "FORBIDDEN",
      "TURNSTILE_UNAVAILABLE",
    ],
  },
];
