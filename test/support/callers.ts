// Calls as they come from outside: through the app with other settings, or through a route that shows who called.
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { Hono } from "hono";
import { app } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { door, type Worker } from "../../src/door.ts";
import type { ErrorCode } from "../../src/errors.ts";
import type { GatewayEnv } from "../../src/gateway/call.ts";
import { gatewayRoute } from "../../src/gateway/gateway-route.ts";
import { authenticate } from "../../src/gateway/identity/authenticate.ts";
import type { Principal } from "../../src/gateway/identity/principal.ts";
import { permitted } from "../../src/gateway/identity/scope.ts";
import { refuse } from "../../src/http/refusals.ts";
import { testSettings } from "./settings.ts";

type Settings = Partial<Record<keyof Env, unknown>>;
/** Every env has its own memory of tokens, keys and revocations, as every isolate has. */
export const isolate = (settings: Settings = {}): Env => ({ ...env, ...settings }) as Env;

export function configOf(settings: object = {}) {
  const reading = readConfig({ ...testSettings, ...settings });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return reading.config;
}

/** Guarded as a model's routes are; it answers with the principal. */
const probe = new Hono<GatewayEnv>();
const stated = { summary: "Who calls", access: "user" } as const;
for (const { mount } of [
  gatewayRoute(
    { ...stated, method: "get", path: "/v2/:model/status/:job" },
    [authenticate, permitted("status")],
    ({ principal }) => Response.json(principal),
  ),
  gatewayRoute(
    { ...stated, method: "post", path: "/v2/:model/run" },
    [authenticate, permitted("run")],
    ({ principal }) => Response.json(principal),
  ),
])
  mount(probe);
probe.onError((error, c) => refuse(error, c.env.exchange));
const guardedProbe = door(probe);

export const statusPath = "/v2/painter/status/job-1";

export async function ask(within: Env, token?: string, path = statusPath, method = "GET"): Promise<Response> {
  return askWith(within, token === undefined ? {} : { Authorization: `Bearer ${token}` }, path, method);
}

export async function askWith(
  within: Env,
  headers: Record<string, string>,
  path = statusPath,
  method = "GET",
): Promise<Response> {
  return deliver(guardedProbe, within, new Request(`https://gateway.example.com${path}`, { method, headers }));
}

export async function send(
  within: Env,
  method: string,
  path: string,
  { key, body, headers = {} }: { key?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Response> {
  const request = new Request(`https://gateway.example.com${path}`, {
    method,
    headers: { ...headers, ...(key !== undefined && { Authorization: `Bearer ${key}` }) },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return deliver(app, within, request);
}

async function deliver(to: Worker, within: Env, request: Request): Promise<Response> {
  const ctx = createExecutionContext();
  const response = await to.fetch(request, within, ctx);
  await waitOnExecutionContext(ctx);
  return response;
}

export async function principalOf(response: Response): Promise<Principal> {
  if (!response.ok) throw new Error(`expected a principal, got ${await response.text()}`);
  return response.json();
}

export async function refusalOf(response: Response): Promise<{ status: number; code: ErrorCode; detail: string }> {
  const { code, detail } = await response.json<{ code: ErrorCode; detail: string }>();
  return { status: response.status, code, detail };
}
