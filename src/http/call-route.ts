// Routes whose guards and handlers take a plain call: each is one statement with its guards and a handler.
import type { Context, MiddlewareHandler } from "hono";
import type * as z from "zod";
import type { CallEnv, HttpCall } from "./call.ts";
import type { Exchange } from "./exchange.ts";
import { type GuardOf, pass, type Route, route, type Said, type Statement } from "./route.ts";

type Schema = z.ZodType | undefined;
export type Handle<C, P extends Schema, Q extends Schema, B extends Schema> = (
  call: C,
  said: Said<P, Q, B>,
) => Response | Promise<Response>;

/** Guards in front of a whole wing, as one middleware. */
export function guarded<Base, C extends Base>(
  callOf: (c: Context<CallEnv<Base>>) => C,
  guards: readonly GuardOf<C>[],
): MiddlewareHandler<CallEnv<Base>> {
  return async (c, next) => {
    const call = callOf(c);
    await pass(guards, call);
    c.set("call", call);
    await next();
  };
}

/** Routes whose guards and handlers take the kind of call that is made here. */
export function routesFor<Base, C extends Base>(callOf: (c: Context<CallEnv<Base>>) => C) {
  return <P extends Schema = undefined, Q extends Schema = undefined, B extends Schema = undefined>(
    statement: Statement<P, Q, B>,
    guards: readonly GuardOf<C>[],
    handle: Handle<C, P, Q, B>,
  ): Route<CallEnv<Base>> => route<CallEnv<Base>, C, P, Q, B>(statement, callOf, guards, handle);
}

/** Whose shape errors have from here on. */
export function errorsOf(shape: Exchange["errorShape"]): GuardOf<HttpCall> {
  return ({ exchange }) => {
    exchange.errorShape = shape;
  };
}
