// The gateway's routes: each is one statement with its guards and a handler, both of which take the gateway's call.
import type { Context } from "hono";
import { routesFor } from "../http/call-route.ts";
import type { GuardOf, Route } from "../http/route.ts";
import { Call, type GatewayEnv } from "./call.ts";

export type GatewayRoute = Route<GatewayEnv>;
export type Guard<C extends Call = Call> = GuardOf<C>;

/** Routes that take a kind of call of their own. */
export const gatewayRoutesFor = <C extends Call>(callOf: (c: Context<GatewayEnv>) => C) => routesFor<Call, C>(callOf);

export const gatewayRoute = gatewayRoutesFor((c) => new Call(c));
