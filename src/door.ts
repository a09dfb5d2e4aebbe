// What stands in front of every route: settings, request id, CORS, security headers, the log line. It is a function around
// the routes, and none of Hono's middleware: so Hono calls one handler for most requests, and no chain.
import type { Hono } from "hono";
import { getPath } from "hono/utils/url";
import { type Config, type Fault, type Reading, readConfig } from "./config.ts";
import { framesOf, Problem } from "./errors.ts";
import type { HttpCall } from "./http/call.ts";
import { letGo } from "./http/client-body.ts";
import { allowOrigin, answerPreflight } from "./http/cors.ts";
import { type AppEnv, type Exchange, newExchange } from "./http/exchange.ts";
import { refuse } from "./http/refusals.ts";
import { serverTiming } from "./http/server-timing.ts";
import { memoizeBy } from "./isolate/memoize-by.ts";
import { Reminder } from "./isolate/reminder.ts";

/** As the runtime calls it. */
export interface Worker {
  fetch(request: Request, env: Env, ctx: HttpCall["ctx"]): Promise<Response>;
}

// biome-ignore lint/suspicious/noExplicitAny: whose call a route takes is its own.
type Routes = Pick<Hono<AppEnv & { Variables: any }>, "fetch" | "router">;

export type Door = (routes: Routes) => Worker;

const misconfigured = new Problem("MISCONFIGURED", "The deployment is misconfigured. Its log says which setting.");

export const doorFor =
  (read: (env: Env) => Reading): Door =>
  (routes) => ({
    async fetch(request, env, ctx) {
      const exchange = newExchange();
      const reading = read(env);
      let response: Response;
      if (!reading.ok) response = refuseAll(reading.faults, env, exchange);
      else if (request.method === "OPTIONS") response = answerPreflight(request, reading.config.allowedOrigins);
      else {
        response = await routes.fetch(request, { bindings: env, config: reading.config, exchange }, ctx);
        letPageRead(request, response, exchange, reading.config);
      }
      const { status, headers } = response;
      const unread = letGo(request, status >= 400);
      if (unread) await unread;
      finish(headers, status, exchange, request.url);
      const config = reading.ok ? reading.config : undefined;
      const log = () => console.log(logLine(request, status, exchange, { routes, config, env }));
      if (exchange.logAfter) ctx.waitUntil(exchange.logAfter.then(log, log));
      else log();
      return response;
    },
  });

function letPageRead(request: Request, { headers }: Response, exchange: Exchange, { allowedOrigins }: Config): void {
  const page = request.headers.get("Origin");
  const mayRead = allowOrigin(headers, page, allowedOrigins);
  // The setting may change: a page that is let in later must not meet the answer that it could not read.
  if (page !== null && !mayRead) exchange.isPublic = false;
}

function refuseAll(faults: readonly Fault[], env: Env, exchange: Exchange): Response {
  if (reminderOf(env).isDue(exchange.startedAt)) {
    console.error(JSON.stringify({ requestId: exchange.requestId, code: misconfigured.code, faults }));
  }
  return refuse(misconfigured, exchange);
}

/** An isolate names its wrong settings so often: health checks go on asking. */
const remindEveryMs = 60_000;
const reminderOf = memoizeBy((_: Env) => new Reminder(remindEveryMs));

/** Parsed once an isolate: the runtime hands out one env. */
export const settingsOf: (env: Env) => Reading = memoizeBy(readConfig);
export const door = doorFor(settingsOf);

/** What caches may keep of a route that allows it; a cache in front of us keeps whatever does not forbid it. */
const keptStatuses: ReadonlySet<number> = new Set([200, 206, 304]);

function finish(headers: Headers, status: number, exchange: Exchange, url: string): void {
  if (!exchange.isPublic || !keptStatuses.has(status)) keepNowhere(headers, exchange.isPublic !== undefined);
  headers.set("X-Request-Id", exchange.requestId);
  headers.set("Server-Timing", serverTiming(exchange));
  headers.set("X-Content-Type-Options", "nosniff");
  headers.set("Referrer-Policy", "no-referrer");
  // A route may ask for more.
  if (!headers.has("Content-Security-Policy"))
    headers.set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  if (url.startsWith("https:")) headers.set("Strict-Transport-Security", "max-age=31536000");
}

function keepNowhere(headers: Headers, isOfPublicRoute: boolean): void {
  headers.set("Cache-Control", "no-store");
  if (isOfPublicRoute) headers.delete("Cloudflare-CDN-Cache-Control");
}

/** Whose line it is; the config is missing where the deployment is misconfigured. */
interface Served {
  readonly routes: Routes;
  readonly config: Config | undefined;
  readonly env: Env;
}

/** Never a body, a key, an `s3Config` or a query string: only what is named here. */
function logLine(request: Request, status: number, exchange: Exchange, { routes, config, env }: Served): string {
  const {
    requestId,
    route = routeOf(routes, request),
    owner,
    model,
    operation,
    code,
    job,
    cache,
    costMicroUsd,
    startedAt,
  } = exchange;
  return JSON.stringify({
    requestId,
    owner,
    method: request.method,
    route,
    // A path may carry the key of a picture or of a hook: it is for the developer's own terminal.
    path: (config?.local ?? env.LOCAL === "true") ? new URL(request.url).pathname : undefined,
    model,
    operation,
    status,
    code,
    job,
    ms: Date.now() - startedAt,
    cost: costMicroUsd === undefined ? undefined : costMicroUsd / 1e6,
    cache,
    inner: isInner(request, config) || undefined,
  });
}

/**
 * The embedded platform calls the Worker. The network says of each other request where it comes from, which is read
 * nowhere else: reading it costs more than the rest of the line.
 */
function isInner(request: Request, config: Config | undefined): boolean {
  return config?.upstream.kind === "embedded" && request.cf === undefined;
}

/**
 * Of what no route's handler has answered: refused before it, or none of the gateway's own. Middleware, which is mounted
 * for every method, is no route.
 */
function routeOf({ router }: Routes, request: Request): string | undefined {
  const asked = request.method === "HEAD" ? "GET" : request.method;
  const matched = router.match(asked, getPath(request))[0];
  return matched.map(([[, route]]) => route).find(({ method }) => method !== "ALL")?.path;
}

/** What an unknown error leaves in the log. Its message may name a value, so it is for the developer's own terminal. */
export function describeFault(error: unknown, exchange: Exchange, local: boolean): string {
  const { requestId } = exchange;
  if (!(error instanceof Error)) return JSON.stringify({ requestId, code: "INTERNAL" });
  const message = local ? error.message : undefined;
  return JSON.stringify({ requestId, code: "INTERNAL", error: error.name, message, stack: framesOf(error) });
}
