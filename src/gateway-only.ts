// The entry of a deployment in front of a real service: neither platform nor samples. wrangler.toml is that of the other entry.
import { DurableObject } from "cloudflare:workers";
import { compose } from "./compose.ts";
import { readConfig } from "./config.ts";
import { doorFor } from "./door.ts";
import { Problem } from "./errors.ts";
import { gateway, gatewayRoutes } from "./gateway/app.ts";
import { memoizeBy } from "./isolate/memoize-by.ts";
import { remoteUpstream } from "./remote-upstream.ts";

export { JobMedia } from "./gateway/media/job-media.ts";
export { SharedRequest } from "./gateway/media/shared-request.ts";
export { Control } from "./gateway/operator-settings/control.ts";
export { Budget } from "./gateway/quota/budget.ts";
export { UserMeter } from "./remote-upstream.ts";

/** The platform's objects: bound, since there is one list of bindings and migrations, and never called. */
export class EndpointQueue extends DurableObject {}
export class Account extends DurableObject {}

const door = doorFor(
  memoizeBy((env: Env) => {
    const reading = readConfig(env);
    if (!reading.ok || reading.config.upstream.kind === "remote") return reading;
    const problem = "is required: this deployment has no platform that could answer instead";
    return { ok: false, faults: [{ setting: "UPSTREAM_URL", problem }] };
  }),
);

const noPlatform = new Problem("NOT_IMPLEMENTED", "This deployment has no embedded platform.");
const routes = gatewayRoutes({
  findUpstream: ({ config }, payer) => {
    const upstream = remoteUpstream(config, payer);
    if (!upstream) throw noPlatform;
    return upstream;
  },
  ownMedia: () => async () => {
    throw noPlatform;
  },
  callPlatform: async () => {
    throw noPlatform;
  },
});

export default compose(door, [gateway(routes)], routes);
