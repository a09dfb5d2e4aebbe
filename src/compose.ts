// What every deployment has: the door in front of every route, the document of all routes, and the answers where there is none.
import { Hono } from "hono";
import * as z from "zod";
import { type Operation, openApi } from "./contract/operation.ts";
import { type Door, describeFault, type Worker } from "./door.ts";
import { Problem } from "./errors.ts";
import type { AppContext, AppEnv } from "./http/exchange.ts";
import { refuse } from "./http/refusals.ts";
import type { Route } from "./http/route.ts";
import { once } from "./isolate/once.ts";

// biome-ignore lint/suspicious/noExplicitAny: a wing's environment is its own.
type Wing = Hono<any>;

export interface Composed extends Worker {
  /** As Hono has them. */
  readonly mounted: Hono["routes"];
}

/** The wings in order, and the routes that they consist of. */
export function compose(
  door: Door,
  wings: readonly Wing[],
  routes: readonly Pick<Route<AppEnv>, "operation">[],
): Composed {
  const app = new Hono<AppEnv>();
  const document = once(() => {
    const operations = [...ownOperations(), ...routes.map(({ operation }) => operation)];
    return openApi(operations, { title: "Sluice", version: "0.1.0" });
  });
  app.get("/healthz", (c) => c.json({ status: "ok" }));
  app.get("/openapi.json", (c) => c.json(document()));
  for (const wing of wings) app.route("/", wing);
  app.notFound((c) => refuse(noRoute(app, c), c.env.exchange));
  app.onError((error, { env: { exchange, config } }) => {
    if (!(error instanceof Problem)) console.error(describeFault(error, exchange, config.local));
    return refuse(error, exchange);
  });
  return { ...door(app), mounted: app.routes };
}

const ownOperations = (): Operation[] => [
  {
    method: "get",
    path: "/healthz",
    summary: "Whether the gateway serves",
    access: "public",
    answer: z.object({ status: z.literal("ok") }),
  },
  { method: "get", path: "/openapi.json", summary: "This document", access: "public", answer: z.looseObject({}) },
];

/** 405 where another method would have been served, else 404. Middleware is no route. */
function noRoute(app: Hono<AppEnv>, c: AppContext): Problem {
  const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"].filter((method) =>
    app.router.match(method, c.req.path)[0].some(([[, route]]) => route.method === method),
  );
  if (methods.length === 0) return new Problem("NOT_FOUND", "There is no such route.");
  const allow = methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
  return new Problem("METHOD_NOT_ALLOWED", `This route takes ${allow}.`, { Allow: allow });
}
