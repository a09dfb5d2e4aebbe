// `POST /sessions`: gives an anonymous visitor an owner id of its own, and the quota of its IP address.

import * as z from "zod";
import type { Config } from "../../config.ts";
import { Problem } from "../../errors.ts";
import { readSmallJson } from "../../http/small-body.ts";
import type { Call } from "../call.ts";
import { gatewayRoute } from "../gateway-route.ts";
import { addressPayer } from "./address.ts";
import { identifyCaller } from "./authenticate.ts";
import { anonymousOwner } from "./owners.ts";
import { anonymousIsOff, mintSession } from "./session-token.ts";
import { signingKeysOf } from "./signing.ts";
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
 * A valid session is renewed: the visitor keeps its owner id (jobs, pictures) and its payer, even on another network by
 * now. So neither a renewal nor a new session gives fresh quota.
 */
export const sessionRoutes = [
  gatewayRoute(
    {
      method: "post",
      path: "/sessions",
      summary: "An identity for a visitor who is not signed in",
      access: "public",
      body: bodySchema,
      answer: issuedSchema,
      errors: ["ANONYMOUS_OFF", "TURNSTILE_FAILED", "FORBIDDEN", "TURNSTILE_UNAVAILABLE"],
    },
    [],
    async (call) => {
      const { config, request } = call;
      if (config.anonymous === "off") throw anonymousIsOff();
      const { turnstile } = await readSmallJson(request, bodySchema);
      const address = request.headers.get("CF-Connecting-IP") ?? (config.local ? localAddress : undefined);
      const payer = address && addressPayer(address);
      if (!payer) throw new Problem("FORBIDDEN", "The address that the request comes from is not known.");
      if (config.anonymous === "turnstile") await demandTurnstile(config, turnstile, address, request.url);
      const visitor = (await visitorSoFar(call)) ?? { owner: anonymousOwner(randomHex()), payer };
      const { token, expiresAt } = await mintSession(signingKeysOf(config), visitor, call.exchange.startedAt);
      const { owner: user } = visitor;
      return Response.json({ token, user, plan: config.sessionPlan, expiresAt: new Date(expiresAt).toISOString() });
    },
  ),
];

/** A caller with another kind of key, or an expired one, gets a new session: everybody may have one. */
async function visitorSoFar(call: Call): Promise<{ owner: string; payer: string } | undefined> {
  if (!call.request.headers.has("Authorization")) return undefined;
  try {
    const { kind, owner, payer } = (await identifyCaller(call)).principal;
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
