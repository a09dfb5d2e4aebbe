// The map: the embedded platform and the gateway, behind one door.
import { compose } from "./compose.ts";
import { door } from "./door.ts";
import { gateway, gatewayRoutes } from "./gateway/app.ts";
import { platform, platformRoutes } from "./platform/app.ts";
import { findUpstream, ownMedia } from "./upstream-choice.ts";

export const routes = gatewayRoutes({
  findUpstream,
  ownMedia,
  // The operator's management calls come to the embedded platform as any client's do, through the front door.
  callPlatform: async ({ env, ctx }, request) => app.fetch(request, env, ctx),
});

export const app = compose(door, [platform, gateway(routes)], [...routes, ...platformRoutes]);
