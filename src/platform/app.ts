// The platform's routes, in order: the job interface, the worker protocol, the files of samples, load balancing, the management
// interface.
import { Hono } from "hono";
import { errorsOf, guarded } from "../http/call-route.ts";
import { authenticate } from "./auth.ts";
import { PlatformCall, type PlatformEnv } from "./call.ts";
import { EndpointCall, endpointPath } from "./endpoint-call.ts";
import { knownEndpoint } from "./endpoints.ts";
import { jobRoutes } from "./jobs.ts";
import { balance, balancedPath, balancedRoutes } from "./load-balancing/routes.ts";
import { managementRoutes } from "./management/management.ts";
import { managementPath } from "./management/management-route.ts";
import { mediaRoutes } from "./media.ts";
import { openaiRoutes } from "./openai.ts";
import type { Guard, PlatformRoute } from "./platform-route.ts";
import { workerRoutes } from "./workers/protocol.ts";

export const platformRoutes: readonly PlatformRoute[] = [
  ...jobRoutes,
  ...openaiRoutes,
  ...workerRoutes,
  ...mediaRoutes,
  ...balancedRoutes,
  ...managementRoutes,
];

export const platform = new Hono<PlatformEnv>();
for (const { mount } of platformRoutes) mount(platform);

const toPlatform = (...guards: Guard[]) => guarded((c) => new PlatformCall(c), guards);
const toEndpoint = (...guards: Guard<EndpointCall>[]) => guarded((c) => new EndpointCall(c), guards);

// Workers take any method. Those that no document can name have no statement.
platform.all(balancedPath, toPlatform(authenticate), (c) => balance(c.get("call")));

// A path below these that is no route is answered behind the same guards, in the same shape.
platform.use(`${endpointPath}/openai/*`, toPlatform(errorsOf("openai")));
platform.use(`${endpointPath}/*`, toEndpoint(authenticate, knownEndpoint));
platform.use(`${managementPath}/*`, toPlatform(errorsOf("management"), authenticate));
