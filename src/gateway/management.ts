// The management interface for the operator: a real one with the server's key, or the one that is built in.
import { Hono } from "hono";
import * as z from "zod";
import type { Config } from "../config.ts";
import type { Operation } from "../contract/operation.ts";
import { type ErrorCode, nameOfFault, Problem } from "../errors.ts";
import { readWhole } from "../wire/body.ts";
import { bodyProblem } from "../wire/body-problem.ts";
import type { AppContext } from "../wire/exchange.ts";
import type { SecretSearch } from "../wire/secret-search.ts";
import { readBounded } from "../wire/small-body.ts";
import { behind, type Guard } from "./behind.ts";
import type { GatewayEnv } from "./env.ts";
import { operatorOnly } from "./guards.ts";
import { keySearchOf, logOwnKey, refusesKey } from "./own-keys.ts";

/** Answers what the embedded platform answers. */
export type CallPlatform = (c: Pick<AppContext, "env" | "executionCtx">, request: Request) => Promise<Response>;

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
const bodyBytes = 1024 * 1024;
/** Read whole, since none of it may leave before it was searched for our key. */
const answerBytes = 8 * 1024 * 1024;
const timeoutMs = 30_000;
/** No segment begins with a dot, so none leads elsewhere. */
const pathPattern = /^(\/[A-Za-z0-9_-][A-Za-z0-9._-]{0,190}){1,4}$/;
const answered = ["Content-Type", "Retry-After"];

export function managementRelay(callPlatform: CallPlatform) {
  const relay = new Hono<GatewayEnv>();
  const ownErrors: Guard<GatewayEnv> = (c) => {
    c.get("exchange").errorShape = "management";
  };
  relay.use("/v1/*", behind<GatewayEnv>(ownErrors, operatorOnly));
  relay.on([...methods], "/v1/:path{.+}", async (c) => {
    const target = targetOf(c.get("config"));
    const { pathname, search } = new URL(c.req.url);
    const path = pathname.slice("/v1".length);
    if (!pathPattern.test(path)) throw new Problem("NOT_FOUND", "There is no such route.");
    const body = await bodyOf(c.req.raw);
    const signal = AbortSignal.timeout(timeoutMs);
    const call = (key: string) => {
      const headers = new Headers({ Authorization: `Bearer ${key}`, Accept: "application/json" });
      const init: RequestInit = { method: c.req.method, headers, redirect: "manual", signal };
      if (body.byteLength > 0) {
        headers.set("Content-Type", "application/json");
        init.body = body;
      }
      const request = new Request(`${target.url}${path}${search}`, init);
      return target.kind === "embedded" ? callPlatform(c, request) : reach(request);
    };
    return answerOf(await callWithKeys(target.keys, c.req.method === "GET", call), keySearchOf(c.get("config")));
  });
  return relay;
}

/** While keys are changed, the newest may not be known yet: what only asks, asks with the others then. */
async function callWithKeys(
  [newest = "", ...older]: readonly string[],
  asks: boolean,
  call: (key: string) => Promise<Response>,
): Promise<Response> {
  let response = await call(newest);
  for (const key of asks ? older : []) {
    if (!refusesKey(response)) break;
    await response.body?.cancel();
    response = await call(key);
  }
  return response;
}

async function bodyOf(request: Request): Promise<Uint8Array> {
  const read = await readWhole(request, bodyBytes);
  if ("bytes" in read) return read.bytes;
  throw bodyProblem(read.fault, bodyBytes);
}

type Target = { readonly kind: "remote" | "embedded"; readonly url: string; readonly keys: readonly string[] };

/** Only ever one of two places, each with the key that belongs to it. */
function targetOf({ management, upstream, upstreamKeys }: Config): Target {
  if (management) return { kind: "remote", ...management };
  if (upstream.kind === "embedded") {
    return { kind: "embedded", url: "https://platform.internal/platform/v1", keys: upstreamKeys };
  }
  throw new Problem("NOT_IMPLEMENTED", "MANAGEMENT_URL is not set, and jobs go to a real service.");
}

async function reach(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (error) {
    console.warn(JSON.stringify({ management: "not reached", error: nameOfFault(error) }));
    throw new Problem("UPSTREAM_UNREACHABLE", "the management interface cannot be reached");
  }
}

async function answerOf(response: Response, keySearch: SecretSearch): Promise<Response> {
  if (response.status === 401) throw new Problem("UPSTREAM_REFUSED", "the management interface refused our key");
  if (response.status >= 300 && response.status < 400) {
    throw new Problem("UPSTREAM_REDIRECT", "the management interface answered with a redirect");
  }
  const headers = new Headers();
  for (const name of answered) {
    const value = response.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  if (!response.body) return new Response(null, { status: response.status, headers });
  // A list of the platform beside us is no stream of bytes.
  const bytes = await readBounded(response.body, answerBytes).catch(() => {
    throw new Problem("UPSTREAM_TRUNCATED", "the management interface's answer broke off");
  });
  if (!bytes) throw new Problem("UPSTREAM_TOO_LARGE", "the management interface's answer is too large");
  if (keySearch.finds(bytes)) {
    logOwnKey();
    throw new Problem("UPSTREAM_BAD_ANSWER", "the management interface's answer says our key");
  }
  return new Response(bytes.byteLength === 0 ? null : bytes, { status: response.status, headers });
}

const errors: readonly ErrorCode[] = [
  ...(["UNAUTHORIZED", "NOT_FOUND", "PAYLOAD_TOO_LARGE", "REQUEST_TIMEOUT", "NOT_IMPLEMENTED"] as const),
  ...(["UPSTREAM_REFUSED", "UPSTREAM_REDIRECT", "UPSTREAM_UNREACHABLE"] as const),
  ...(["UPSTREAM_BAD_ANSWER", "UPSTREAM_TOO_LARGE", "UPSTREAM_TRUNCATED"] as const),
];

export const managementOperations: readonly Operation[] = methods.map((method) => ({
  method: method.toLowerCase() as Operation["method"],
  path: "/v1/{path}",
  summary: "The management interface, as /platform/v1/openapi.json describes it",
  access: "operator",
  answer: z.unknown(),
  errors,
}));
