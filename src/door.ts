// What stands in front of every route, in one middleware: settings, request id, CORS, security headers, the log line.
import type { MiddlewareHandler } from "hono";
import { matchedRoutes } from "hono/route";
import { type Reading, readConfig } from "./config.ts";
import { framesOf, Problem } from "./errors.ts";
import { letGo } from "./http/client-body.ts";
import { allowOrigin, answerPreflight } from "./http/cors.ts";
import type { AppContext, AppEnv, Exchange } from "./http/exchange.ts";
import { refuse } from "./http/refusals.ts";
import { serverTiming } from "./http/server-timing.ts";
import { memoizeBy } from "./isolate/memoize-by.ts";
import { Reminder } from "./isolate/reminder.ts";

const misconfigured = new Problem("MISCONFIGURED", "The deployment is misconfigured. Its log says which setting.");

export const doorFor =
  (read: (env: Env) => Reading): MiddlewareHandler<AppEnv> =>
  async (c, next) => {
    const exchange: Exchange = { requestId: crypto.randomUUID(), startedAt: Date.now(), errorShape: "superset" };
    c.set("exchange", exchange);
    const reading = read(c.env);
    if (!reading.ok) {
      c.res = refuse(misconfigured, exchange);
      if (reminderOf(c.env).isDue(exchange.startedAt)) {
        const { requestId } = exchange;
        console.error(JSON.stringify({ requestId, code: misconfigured.code, faults: reading.faults }));
      }
    } else {
      c.set("config", reading.config);
      const { allowedOrigins } = reading.config;
      if (c.req.method === "OPTIONS") {
        c.res = answerPreflight(c.req.raw, allowedOrigins);
      } else {
        await next();
        const page = c.req.header("Origin") ?? null;
        const mayRead = allowOrigin(c.res.headers, page, allowedOrigins);
        // The setting may change: a page that is let in later must not meet the answer that it could not read.
        if (page !== null && !mayRead) exchange.isPublic = false;
      }
    }
    const { status } = c.res;
    const unread = letGo(c.req.raw, status >= 400);
    if (unread) await unread;
    finish(c.res.headers, status, exchange, c.req.url);
    const log = () => console.log(logLine(c, exchange, status));
    if (exchange.logAfter) c.executionCtx.waitUntil(exchange.logAfter.then(log, log));
    else log();
  };

/** An isolate names its wrong settings so often: health checks go on asking. */
const remindEveryMs = 60_000;
const reminderOf = memoizeBy((_: Env) => new Reminder(remindEveryMs));

/** Parsed once an isolate: the runtime hands out one env. */
export const settingsOf: (env: Env) => Reading = memoizeBy(readConfig);
export const door = doorFor(settingsOf);

/** What caches may keep of a route that allows it; a cache in front of us keeps whatever does not forbid it. */
const keptStatuses: ReadonlySet<number> = new Set([200, 206, 304]);

function finish(headers: Headers, status: number, exchange: Exchange, url: string): void {
  if (!exchange.isPublic || !keptStatuses.has(status)) keepNowhere(headers);
  headers.set("X-Request-Id", exchange.requestId);
  headers.set("Server-Timing", serverTiming(exchange));
  headers.set("X-Content-Type-Options", "nosniff");
  headers.set("Referrer-Policy", "no-referrer");
  // A route may ask for more.
  if (!headers.has("Content-Security-Policy"))
    headers.set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  if (url.startsWith("https:")) headers.set("Strict-Transport-Security", "max-age=31536000");
}

function keepNowhere(headers: Headers): void {
  headers.set("Cache-Control", "no-store");
  headers.delete("Cloudflare-CDN-Cache-Control");
}

/** Never a body, a key, an `s3Config` or a query string: only what is named here. */
function logLine(c: AppContext, exchange: Exchange, status: number): string {
  const { requestId, owner, model, operation, code, job, cache, costMicroUsd, startedAt } = exchange;
  return JSON.stringify({
    requestId,
    owner,
    method: c.req.method,
    route: routeOf(c),
    // A path may carry the key of a picture or of a hook: it is for the developer's own terminal.
    path: (c.get("config")?.local ?? c.env.LOCAL === "true") ? new URL(c.req.url).pathname : undefined,
    model,
    operation,
    status,
    code,
    job,
    ms: Date.now() - startedAt,
    cost: costMicroUsd === undefined ? undefined : costMicroUsd / 1e6,
    cache,
    inner: isInner(c) || undefined,
  });
}

/**
 * The embedded platform calls the Worker. The network says of each other request where it comes from, which is read
 * nowhere else: reading it costs more than the rest of the line.
 */
function isInner(c: AppContext): boolean {
  return c.get("config")?.upstream.kind === "embedded" && c.req.raw.cf === undefined;
}

/** The pattern that matched, as `/v2/:model/run`. Middleware, which is mounted for every method, is no route. */
function routeOf(c: AppContext): string | undefined {
  return matchedRoutes(c).find(({ method }) => method !== "ALL")?.path;
}

/** What an unknown error leaves in the log. Its message may name a value, so it is for the developer's own terminal. */
export function describeFault(error: unknown, exchange: Exchange, local: boolean): string {
  const { requestId } = exchange;
  if (!(error instanceof Error)) return JSON.stringify({ requestId, code: "INTERNAL" });
  const message = local ? error.message : undefined;
  return JSON.stringify({ requestId, code: "INTERNAL", error: error.name, message, stack: framesOf(error) });
}
