// The management interface for the operator: a real one with the server's key, or the one that is built in.
import * as z from "zod";
import type { Config } from "../../config.ts";
import { type ErrorCode, nameOfFault, Problem } from "../../errors.ts";
import { readWhole } from "../../http/body.ts";
import { bodyErrors, bodyProblem, refuseEncoded } from "../../http/body-problem.ts";
import { readableEncoding } from "../../http/passage.ts";
import { readBounded } from "../../http/small-body.ts";
import type { SecretSearch } from "../../json/secret-search.ts";
import { SecretStream } from "../../json/secret-stream.ts";
import type { Call } from "../call.ts";
import { type GatewayRoute, gatewayRoute } from "../gateway-route.ts";
import { keySearchOf, logOwnKey, refusesKey } from "../upstream/own-keys.ts";
import { openMade, readOpening } from "./opening.ts";

/** Answers what the embedded platform answers. */
export type CallPlatform = (call: Pick<Call, "env" | "ctx">, request: Request) => Promise<Response>;

const methods = ["get", "post", "put", "patch", "delete"] as const;
const bodyBytes = 1024 * 1024;
/** A service's answer is read whole, since none of it may leave before it was searched for our key. */
const answerBytes = 8 * 1024 * 1024;
const timeoutMs = 30_000;
/** No segment begins with a dot, so none leads elsewhere. */
const pathPattern = /^(\/[A-Za-z0-9_-][A-Za-z0-9._-]{0,190}){1,4}$/;
/** A resource is asked for by what is no id. */
const badId = /^\/[a-z]+\/[^/]+(\/[a-z]+)?$/;
const passedHeaders = ["Content-Type", "Retry-After"];

const errors: readonly ErrorCode[] = [
  ...bodyErrors,
  ...(["UNAUTHORIZED", "INVALID_REQUEST", "NOT_FOUND", "NOT_IMPLEMENTED"] as const),
  ...(["NAME_TAKEN", "IN_USE", "LOCKED", "WRONG_STATE"] as const),
  ...(["UPSTREAM_REFUSED", "UPSTREAM_REDIRECT", "UPSTREAM_UNREACHABLE"] as const),
  ...(["UPSTREAM_BAD_ANSWER", "UPSTREAM_BAD_JSON", "UPSTREAM_TOO_LARGE", "UPSTREAM_TRUNCATED"] as const),
];

/** They stand behind `operatorOnly`. */
export function managementRoutes(callPlatform: CallPlatform): GatewayRoute[] {
  return methods.map((method) =>
    gatewayRoute(
      {
        method,
        path: "/v1/:path{.+}",
        summary: "The management interface, as /platform/v1/openapi.json describes it",
        access: "operator",
        answer: z.unknown(),
        otherStatuses: [201, 204],
        errors,
      },
      [],
      (call) => relay(call, callPlatform),
    ),
  );
}

async function relay(call: Call, callPlatform: CallPlatform): Promise<Response> {
  const { request, config } = call;
  const target = targetOf(config);
  const { pathname, search } = new URL(request.url);
  const path = pathname.slice("/v1".length);
  if (badId.test(path) && !pathPattern.test(path)) throw new Problem("INVALID_REQUEST", "path: expected an id");
  if (!pathPattern.test(path)) throw new Problem("NOT_FOUND", "There is no such route.");
  const makes = request.method === "POST" && path === "/endpoints";
  const sent = await bodyOf(request);
  const { body, value } = makes ? readOpening(sent) : { body: sent, value: undefined };
  const signal = AbortSignal.timeout(timeoutMs);
  const ask = (key: string) => {
    const headers = new Headers({ Authorization: `Bearer ${key}`, Accept: "application/json" });
    const init: RequestInit = { method: request.method, headers, redirect: "manual", signal };
    if (body.byteLength > 0) {
      headers.set("Content-Type", "application/json");
      init.body = body;
    }
    const asked = new Request(`${target.url}${path}${search}`, init);
    return target.kind === "embedded" ? callPlatform(call, asked) : reach(asked);
  };
  const answered = await askWithKeys(target.keys, request.method === "GET", ask);
  const answer = await answerOf(answered, target.kind, keySearchOf(config));
  return makes && answer.ok ? openMade(call, answer, value) : answer;
}

/** While keys are changed, the newest may not be known yet: what only asks, asks with the others then. */
async function askWithKeys(
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
  refuseEncoded(request);
  const read = await readWhole(request, bodyBytes);
  if ("bytes" in read) return read.bytes;
  throw bodyProblem(read.fault, bodyBytes);
}

type ManagementService = {
  readonly kind: "remote" | "embedded";
  readonly url: string;
  readonly keys: readonly string[];
};

/** Only ever one of two places, each with the key that belongs to it. */
function targetOf({ management, upstream, upstreamKeys }: Config): ManagementService {
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

async function answerOf(response: Response, kind: ManagementService["kind"], keySearch: SecretSearch) {
  const { status } = response;
  if (status === 401) throw new Problem("UPSTREAM_REFUSED", "the management interface refused our key");
  if (status >= 300 && status < 400) {
    throw new Problem("UPSTREAM_REDIRECT", "the management interface answered with a redirect");
  }
  if (status < 200 || status > 599) {
    throw new Problem("UPSTREAM_BAD_ANSWER", "the management interface's answer is none");
  }
  if (!readableEncoding.test(response.headers.get("Content-Encoding") ?? "")) {
    throw new Problem(
      "UPSTREAM_BAD_ANSWER",
      "the management interface's answer is in an encoding that was not asked for",
    );
  }
  const headers = new Headers();
  for (const name of passedHeaders) {
    const value = response.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  if (keySearch.findsInHeaders(headers)) throw saysKey();
  if (!response.body) return new Response(null, { status, headers });
  if (kind === "embedded") return new Response(await flowing(response.body, keySearch), { status, headers });
  const bytes = await readBounded(response.body, answerBytes).catch(() => {
    throw new Problem("UPSTREAM_TRUNCATED", "the management interface's answer broke off");
  });
  if (!bytes) throw new Problem("UPSTREAM_TOO_LARGE", "the management interface's answer is too large");
  if (keySearch.finds(bytes)) throw saysKey();
  return new Response(bytes.byteLength === 0 ? null : bytes, { status, headers });
}

/** Lists of the platform beside us may be of any length: as much is searched before anything is answered, then each piece. */
async function flowing(body: ReadableStream<Uint8Array>, keySearch: SecretSearch): Promise<ReadableStream> {
  const pieces = searched(body, new SecretStream(keySearch));
  const first: Uint8Array[] = [];
  for (let bytes = 0; bytes < answerBytes; bytes += first.at(-1)?.byteLength ?? 0) {
    const { value } = await pieces.next();
    if (!value) break;
    first.push(value);
  }
  return new ReadableStream({
    async pull(controller) {
      const value = first.shift() ?? (await pieces.next()).value;
      if (value) controller.enqueue(value);
      else controller.close();
    },
    cancel: async () => void (await pieces.return()),
  });
}

async function* searched(body: ReadableStream<Uint8Array>, search: SecretStream): AsyncGenerator<Uint8Array, void> {
  for await (const piece of body) {
    const clear = search.take(piece);
    if (!clear) throw saysKey();
    if (clear.byteLength > 0) yield clear.slice();
  }
  if (search.held.byteLength > 0) yield search.held;
}

function saysKey(): Problem {
  logOwnKey();
  return new Problem("UPSTREAM_BAD_ANSWER", "the management interface's answer says our key");
}
