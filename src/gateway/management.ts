// The management interface for the operator: a real one with the server's key, or the one that is built in.
import { Hono } from "hono";
import * as z from "zod";
import type { Config } from "../config.ts";
import type { Operation } from "../contract/operation.ts";
import { type ErrorCode, nameOfFault, Problem } from "../errors.ts";
import { readWhole, statedLength } from "../wire/body.ts";
import { bodyProblem } from "../wire/body-problem.ts";
import type { AppContext } from "../wire/exchange.ts";
import { behind, type Guard } from "./behind.ts";
import type { GatewayEnv } from "./env.ts";
import { operatorOnly } from "./guards.ts";

/** Answers what the embedded platform answers. */
export type CallPlatform = (c: Pick<AppContext, "env" | "executionCtx">, request: Request) => Promise<Response>;

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
const bodyBytes = 1024 * 1024;
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
    const headers = new Headers({ Authorization: `Bearer ${target.key}`, Accept: "application/json" });
    const body = await bodyOf(c.req.raw);
    if (body.byteLength > 0) headers.set("Content-Type", "application/json");
    const request = new Request(`${target.url}${path}${search}`, {
      ...{ method: c.req.method, headers, redirect: "manual", signal: AbortSignal.timeout(timeoutMs) },
      ...(body.byteLength > 0 && { body }),
    });
    const response = await (target.kind === "embedded" ? callPlatform(c, request) : reach(request));
    return answerOf(response);
  });
  return relay;
}

async function bodyOf({ body, headers }: Request): Promise<Uint8Array> {
  const read = await readWhole(body, bodyBytes, statedLength(headers));
  if ("bytes" in read) return read.bytes;
  throw bodyProblem(read.fault, bodyBytes);
}

type Target = { readonly kind: "remote" | "embedded"; readonly url: string; readonly key: string };

/** Only ever one of two places, each with the key that belongs to it. */
function targetOf({ management, upstream, upstreamKey }: Config): Target {
  if (management) return { kind: "remote", ...management };
  if (upstream.kind === "embedded") {
    return { kind: "embedded", url: "https://platform.internal/platform/v1", key: upstreamKey };
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

function answerOf(response: Response): Response {
  if (response.status === 401) throw new Problem("UPSTREAM_REFUSED", "the management interface refused our key");
  if (response.status >= 300 && response.status < 400) {
    throw new Problem("UPSTREAM_REDIRECT", "the management interface answered with a redirect");
  }
  const headers = new Headers();
  for (const name of answered) {
    const value = response.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return new Response(response.body, { status: response.status, headers });
}

const errors: readonly ErrorCode[] = [
  ...(["UNAUTHORIZED", "NOT_FOUND", "PAYLOAD_TOO_LARGE", "NOT_IMPLEMENTED"] as const),
  ...(["UPSTREAM_REFUSED", "UPSTREAM_REDIRECT", "UPSTREAM_UNREACHABLE"] as const),
];

export const managementOperations: readonly Operation[] = methods.map((method) => ({
  method: method.toLowerCase() as Operation["method"],
  path: "/v1/{path}",
  summary: "The management interface, as /platform/v1/openapi.json describes it",
  access: "operator",
  answer: z.unknown(),
  errors,
}));
