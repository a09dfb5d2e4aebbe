// Which upstream the gateway calls: a real service by its URL, or the platform that lives beside it.
import { Hono } from "hono";
import { type Config, ownOrigin } from "./config.ts";
import type { Call } from "./gateway/call.ts";
import type { CallOut, Upstream } from "./gateway/upstream/upstream.ts";
import { asInside } from "./http/client-body.ts";
import { type AppEnv, type Incoming, newExchange } from "./http/exchange.ts";
import { refuse } from "./http/refusals.ts";
import type { Send } from "./http/webhook.ts";
import { platform } from "./platform/app.ts";
import { UserMeter as MeterOfRemote, remoteUpstream, upstreamAt } from "./remote-upstream.ts";

/** The platform is called as the real service is, only that its requests never leave the Worker. */
function upstreamOf(config: Config, payer: string, origin: () => string, toPlatform: CallOut): Upstream {
  return remoteUpstream(config, payer) ?? upstreamAt(`${origin()}/platform/v2`, config, payer, toPlatform);
}

export function findUpstream({ config, request, env, ctx }: Call, payer: string): Upstream {
  const origin = () => ownOrigin(config, request.url);
  return upstreamOf(config, payer, origin, async (url, init) =>
    embedded.fetch(asInside(new Request(url, init)), inside({ config, env }), ctx),
  );
}

/** Files of the embedded platform, without the network. */
export function ownMedia({ config, env, ctx }: Call): Send {
  return async (request) => embedded.fetch(request, inside({ config, env }), ctx);
}

/** The platform without the door: the request has come through it already, and is logged once. */
const embedded = new Hono<AppEnv>();
embedded.route("/", platform);
embedded.onError((error, c) => refuse(error, c.env.exchange));

/** Each has an exchange of its own, which nobody logs. */
function inside({ config, env }: Pick<Call, "config" | "env">): Incoming {
  return { bindings: env, config, exchange: newExchange() };
}

/** Only its path counts: nothing of it leaves the Worker. */
const insideOrigin = "https://sluice.internal";

export class UserMeter extends MeterOfRemote {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, (config, payer) =>
      upstreamOf(
        config,
        payer,
        () => config.publicUrl ?? insideOrigin,
        (url, init) => ctx.exports.default.fetch(url, init),
      ),
    );
  }
}
