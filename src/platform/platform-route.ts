// The platform's routes: each is one statement with its guards and a handler, both of which take the platform's call.
import type { Context } from "hono";
import { routesFor } from "../http/call-route.ts";
import type { GuardOf, Route } from "../http/route.ts";
import { PlatformCall, type PlatformEnv } from "./call.ts";

export type PlatformRoute = Route<PlatformEnv>;
export type Guard<C extends PlatformCall = PlatformCall> = GuardOf<C>;

/** Routes that take a kind of call of their own. */
export const platformRoutesFor = <C extends PlatformCall>(callOf: (c: Context<PlatformEnv>) => C) =>
  routesFor<PlatformCall, C>(callOf);

export const platformRoute = platformRoutesFor((c) => new PlatformCall(c));
