// The map: what stands in front of every route, then the mounts, in order.
import { Hono } from "hono";
import * as z from "zod";
import { type Operation, openApi } from "./contract/operation.ts";
import { describeFault, door } from "./door.ts";
import { Problem } from "./errors.ts";
import { gatewayOperations, gatewayRoutes } from "./gateway/app.ts";
import { managementRelay } from "./gateway/management.ts";
import { platform, platformOperations } from "./platform/app.ts";
import { findUpstream, ownMedia } from "./upstream-choice.ts";
import type { AppContext, AppEnv } from "./wire/exchange.ts";
import { refuse } from "./wire/refusals.ts";

export const app = new Hono<AppEnv>();

app.use(door);
app.get("/healthz", (c) => c.json({ status: "ok" }));
app.get("/openapi.json", (c) => c.json(openApi(operations, { title: "Sluice", version: "0.1.0" })));
app.route("/platform", platform);
app.route("/", gatewayRoutes(findUpstream, ownMedia));
// The gateway calls the embedded platform as any client does, through the front door.
app.route(
  "/",
  managementRelay(async (c, request) => app.fetch(request, c.env, c.executionCtx)),
);

app.notFound((c) => refuse(noRoute(c), c.get("exchange")));
app.onError((error, c) => {
  if (!(error instanceof Problem))
    console.error(describeFault(error, c.get("exchange"), c.get("config")?.local === true));
  return refuse(error, c.get("exchange"));
});

const operations: readonly Operation[] = [
  {
    method: "get",
    path: "/healthz",
    summary: "Whether the gateway serves",
    access: "public",
    answer: z.object({ status: z.literal("ok") }),
  },
  { method: "get", path: "/openapi.json", summary: "This document", access: "public", answer: z.looseObject({}) },
  ...gatewayOperations,
  ...platformOperations,
];

/** 405 where another method would have been served, else 404. Middleware is no route. */
function noRoute(c: AppContext): Problem {
  const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"].filter((method) =>
    app.router.match(method, c.req.path)[0].some(([[, route]]) => route.method === method),
  );
  if (methods.length === 0) return new Problem("NOT_FOUND", "There is no such route.");
  const allow = methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
  return new Problem("METHOD_NOT_ALLOWED", `This route takes ${allow}.`, { Allow: allow });
}
