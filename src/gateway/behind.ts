// Guards: what must hold before a route's handler is asked. One says nothing, or throws what the caller is answered with.
import type { Context, MiddlewareHandler } from "hono";
import type { GatewayEnv } from "./env.ts";

/** A promise only where there is something to wait for: on a poll, waiting costs more than most guards do. */
export type Guard<E extends GatewayEnv> = (c: Context<E>) => void | Promise<void>;

/** One after the other, as one middleware. Those of every route also stand before a route that knows more. */
export function behind<E extends GatewayEnv>(
  ...guards: readonly (Guard<E> | Guard<GatewayEnv>)[]
): MiddlewareHandler<E> {
  return async (c, next) => {
    for (const guard of guards as readonly Guard<E>[]) {
      const waiting = guard(c);
      if (waiting) await waiting;
    }
    await next();
  };
}
