// The gateway's routes, in order, and the guards of whole wings of them.
import { Hono } from "hono";
import { errorsOf, guarded } from "../http/call-route.ts";
import { budgetRoutes } from "./admin/budget.ts";
import { type CallPlatform, managementRoutes } from "./admin/management.ts";
import { modelRoutes } from "./admin/models.ts";
import { planRoutes } from "./admin/plans.ts";
import { revocationRoutes } from "./admin/revocations.ts";
import { selfcheckRoutes } from "./admin/selfcheck.ts";
import { userRoutes } from "./admin/users.ts";
import { Call, type GatewayEnv } from "./call.ts";
import { catalogRoutes } from "./catalog.ts";
import type { GatewayRoute, Guard } from "./gateway-route.ts";
import { operatorOnly } from "./identity/authenticate.ts";
import { mintingRoutes } from "./identity/minting.ts";
import { sessionRoutes } from "./identity/sessions.ts";
import { hookRoutes } from "./jobs/hooks.ts";
import type { FindUpstream } from "./jobs/job-call.ts";
import { jobRoutes } from "./jobs/routes.ts";
import { balancedRoutes } from "./lb/routes.ts";
import { imageRoutes, type OwnMedia } from "./media/routes.ts";
import { usageRoutes } from "./quota/usage-route.ts";
import { uploadRoutes } from "./uploads/routes.ts";

/** What lies outside the gateway: the model service, and the platform beside it. */
export interface GatewayDeps {
  readonly findUpstream: FindUpstream;
  readonly ownMedia: OwnMedia;
  readonly callPlatform: CallPlatform;
}

export function gatewayRoutes({ findUpstream, ownMedia, callPlatform }: GatewayDeps): GatewayRoute[] {
  return [
    ...catalogRoutes,
    ...sessionRoutes,
    ...mintingRoutes,
    ...jobRoutes(findUpstream),
    ...balancedRoutes(findUpstream),
    ...hookRoutes(findUpstream),
    ...imageRoutes(ownMedia),
    ...uploadRoutes,
    ...usageRoutes,
    ...revocationRoutes,
    ...modelRoutes,
    ...userRoutes,
    ...planRoutes,
    ...budgetRoutes,
    ...selfcheckRoutes(findUpstream),
    ...managementRoutes(callPlatform),
  ];
}

/** A path below these that is no route is answered behind the same guards, in the same shape. */
export function gateway(routes: readonly GatewayRoute[]): Hono<GatewayEnv> {
  const app = new Hono<GatewayEnv>();
  const before = (...guards: Guard[]) => guarded<Call, Call>((c) => new Call(c), guards);
  app.use("/v2/:model/openai/*", before(errorsOf("openai")));
  app.use("/admin/*", before(operatorOnly));
  app.use("/v1/*", before(errorsOf("management"), operatorOnly));
  for (const { mount } of routes) mount(app);
  return app;
}
