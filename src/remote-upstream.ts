// A real model service as the gateway's upstream, by its URL, and the meter whose alarm asks it about jobs nobody follows.
import type { Config } from "./config.ts";
import { settingsOf } from "./door.ts";
import { networkOf } from "./gateway/identity/address.ts";
import { endDescriber, statusPoller } from "./gateway/jobs/poll-upstream.ts";
import { imagesOf } from "./gateway/media/images.ts";
import { UserMeter as Meter } from "./gateway/quota/user-meter.ts";
import { Breaker } from "./gateway/upstream/breaker.ts";
import { keySearchOf } from "./gateway/upstream/own-keys.ts";
import { type CallOut, defaultTimes, type Upstream } from "./gateway/upstream/upstream.ts";

/** What the isolate learns of the health of upstreams serves every request. */
const breaker = new Breaker();

/** Where its job interface begins, and how its requests leave. */
export function upstreamAt(base: string, config: Config, payer: string, send: CallOut): Upstream {
  const { upstreamKeys: keys } = config;
  const keySearch = keySearchOf(config);
  return { base, keys, keySearch, send, breaker, payer: networkOf(payer) ?? payer, times: defaultTimes };
}

/** Undefined where none is set. */
export function remoteUpstream(config: Config, payer: string): Upstream | undefined {
  const { upstream } = config;
  if (upstream.kind !== "remote") return undefined;
  return upstreamAt(`${upstream.url}/v2`, config, payer, (url, init) => fetch(url, init));
}

/** The meter with the upstream that its alarm asks. */
export class UserMeter extends Meter {
  constructor(ctx: DurableObjectState, env: Env, upstreamOf = remoteUpstream) {
    super(ctx, env);
    const reading = settingsOf(env);
    if (!reading.ok) return;
    const { config } = reading;
    const upstream = upstreamOf(config, ctx.id.name ?? String(ctx.id));
    if (!upstream) return;
    this.describeEnd = endDescriber(config);
    this.ask = statusPoller(config, imagesOf(config, env).links, upstream, config.publicUrl);
  }
}
