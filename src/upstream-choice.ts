// Which upstream the gateway calls: a real service by its URL, or the platform that lives beside it.
import { Hono } from "hono";
import { type Config, ownOrigin } from "./config.ts";
import { settingsOf } from "./door.ts";
import { Breaker } from "./gateway/breaker.ts";
import type { GatewayContext } from "./gateway/env.ts";
import { networkOf } from "./gateway/identity/address.ts";
import { imagesOf } from "./gateway/images/images.ts";
import { asker, endDescriber } from "./gateway/jobs/ask-upstream.ts";
import { keySearchOf } from "./gateway/own-keys.ts";
import { UserMeter as Meter } from "./gateway/quota/user-meter.ts";
import { type CallOut, type Upstream, usualTimes } from "./gateway/upstream.ts";
import { platform } from "./platform/app.ts";
import { asInside } from "./wire/client-body.ts";
import type { AppEnv } from "./wire/exchange.ts";
import { refuse } from "./wire/refusals.ts";
import type { Send } from "./wire/webhook.ts";

/** What the isolate learns of the health of upstreams serves every request. */
const breaker = new Breaker();

/** The platform is called as the real service is, only that its requests never leave the Worker. */
function upstreamOf(config: Config, payer: string, origin: () => string, toPlatform: CallOut): Upstream {
  const { upstream, upstreamKeys: keys } = config;
  const remote = upstream.kind === "remote";
  const base = remote ? `${upstream.url}/v2` : `${origin()}/platform/v2`;
  const send: CallOut = remote ? (url, init) => fetch(url, init) : toPlatform;
  return {
    base,
    keys,
    keySearch: keySearchOf(config),
    send,
    breaker,
    payer: networkOf(payer) ?? payer,
    times: usualTimes,
  };
}

export function findUpstream(c: GatewayContext, payer: string): Upstream {
  const config = c.get("config");
  const origin = () => ownOrigin(config, c.req.url);
  return upstreamOf(config, payer, origin, async (url, init) =>
    embedded.fetch(asInside(new Request(url, init)), c.env, c.executionCtx),
  );
}

/** Files of the embedded platform, without the network. */
export function ownMedia(c: GatewayContext): Send {
  return async (request) => embedded.fetch(request, c.env, c.executionCtx);
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

/** Only its path counts: nothing of it leaves the Worker. */
const insideOrigin = "https://sluice.internal";

/** The meter with the upstream that its alarm asks about jobs that nobody follows. */
export class UserMeter extends Meter {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const reading = settingsOf(env);
    if (!reading.ok) return;
    const origin = () => reading.config.publicUrl ?? insideOrigin;
    this.describeEnd = endDescriber(reading.config);
    this.ask = asker(
      reading.config,
      imagesOf(reading.config, env).links,
      upstreamOf(reading.config, ctx.id.name ?? String(ctx.id), origin, (url, init) =>
        ctx.exports.default.fetch(url, init),
      ),
      reading.config.publicUrl,
    );
  }
}
