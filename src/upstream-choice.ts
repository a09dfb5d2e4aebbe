// Which upstream the gateway calls: a real service by its URL, or the platform that lives beside it.
import { type Context, Hono } from "hono";
import { settingsOf } from "./door.ts";
import type { JobEnv } from "./gateway/jobs/target.ts";
import { Breaker, type Upstream } from "./gateway/upstream.ts";
import { platform } from "./platform/app.ts";
import type { AppEnv } from "./wire/exchange.ts";
import { refuse } from "./wire/refusals.ts";
import type { Send } from "./wire/webhook.ts";

/** One an isolate and upstream: what it learns of an upstream's health serves every request. */
const breakers = new Map<string, Breaker>();

export function findUpstream(c: Context<JobEnv>): Upstream {
  const { upstream, upstreamKey: key, publicUrl } = c.get("config");
  const origin = publicUrl ?? new URL(c.req.url).origin;
  const base = upstream.kind === "remote" ? `${upstream.url}/v2` : `${origin}/platform/v2`;
  const send: Send =
    upstream.kind === "remote"
      ? (request) => fetch(request)
      : async (request) => embedded.fetch(request, c.env, c.executionCtx);
  return { base, key, send, breaker: breakerOf(base) };
}

function breakerOf(base: string): Breaker {
  const known = breakers.get(base) ?? new Breaker();
  breakers.set(base, known);
  return known;
}

/** The platform without the door: the request has come through it already, and is logged once. */
const embedded = new Hono<AppEnv>();
embedded.use(async (c, next) => {
  const reading = settingsOf(c.env);
  c.set("exchange", { requestId: crypto.randomUUID(), startedAt: Date.now(), errorShape: "superset" });
  if (reading.ok) c.set("config", reading.config);
  await next();
});
embedded.route("/platform", platform);
embedded.onError((error, c) => refuse(error, c.get("exchange")));
