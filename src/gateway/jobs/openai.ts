// OpenAI's routes: what is served, and a call to one of them, admitted and relayed, or answered as it was before.
import { limits } from "../../contract/limits.ts";
import { Problem } from "../../errors.ts";
import type { OpenAiRoute } from "../../models/model.ts";
import { readObject } from "../upstream/upstream-answer.ts";
import { newAdmission } from "./admission-id.ts";
import { idempotencyOf, payerTerms, refuseOtherBody } from "./admit-request.ts";
import { type JobCall, survivesDisconnect } from "./job-call.ts";
import { repeatAnswer } from "./kept-answer.ts";
import { metered } from "./metered.ts";
import { noBody, openBodyOf } from "./openai-body.ts";
import { OpenAiRelay } from "./openai-relay.ts";
import { setQuota } from "./quota-headers.ts";

const routePattern = /^v1(\/[a-z0-9_-]{1,64}){1,4}$/;
const methods: Readonly<Record<OpenAiRoute, "GET" | "POST">> = { "chat/completions": "POST", models: "GET" };
/** Generation may take its time before the first byte. */
const answerWaitMs = limits.waitMs.max;

interface Route {
  readonly method: "GET" | "POST";
  /** `v1/chat/completions` */
  readonly path: string;
}

export async function relayOpenAi(call: JobCall): Promise<Response> {
  const { method } = call.request;
  const path = call.path.replace(/^\/v2\/[^/]+\/openai\//, "");
  const route: Route = { method: method === "POST" ? method : "GET", path };
  // A HEAD would cost what a GET costs, and give nothing for it.
  const isWorthIt = method !== "HEAD" || isFree(route);
  if (!routePattern.test(path) || !isServed(call, route) || !isWorthIt) {
    throw new Problem("NOT_FOUND", `${call.target.name} has no such route: ${method} ${path}`);
  }
  return isFree(route) ? listModels(call, route) : survivesDisconnect(call, relayPaid(call, route));
}

/** An endpoint that the operator opened at a price may have any route; a model of the catalog has those that it lists. */
function isServed({ target: { model } }: JobCall, { method, path }: Route): boolean {
  if (!model) return true;
  return model.openAiRoutes.some((known) => `v1/${known}` === path && methods[known] === method);
}

/** Only the list of models is free. Any other `GET` may make an endpoint work. */
function isFree({ method, path }: Route): boolean {
  return method === "GET" && path === "v1/models";
}

async function listModels(call: JobCall, route: Route): Promise<Response> {
  const answered = await call.upstream.openAi({ ...route, waitMs: answerWaitMs }, true);
  return Response.json(await readObject(answered));
}

async function relayPaid(call: JobCall, route: Route): Promise<Response> {
  const { method, path } = route;
  const body = method === "POST" ? await openBodyOf(call) : noBody(call.target);
  const admission = newAdmission(Date.now());
  const idempotency = await idempotencyOf(call, method === "POST" ? `openai/${path}` : `GET openai/${path}`, body);
  const request = {
    ...payerTerms(call),
    admission,
    operation: "openai",
    reserveMicroUsd: body.reserveMicroUsd,
    inputBytes: body.statedBytes,
    hasNotice: false,
    ttlMs: answerWaitMs,
    retentionMs: answerWaitMs,
    webhook: undefined,
    idempotency,
  } as const;
  const relay = new OpenAiRelay(call, body, { admission, isKeyed: idempotency !== undefined });
  const relayed = await metered(
    call,
    request,
    (attempt) => relay.relay(attempt, { ...route, waitMs: answerWaitMs }),
    (answered) => relay.endLost(answered),
  );
  if ("replay" in relayed) {
    await refuseOtherBody(body, relayed.replay);
    return repeatAnswer(call.env.IMAGES, relayed.replay, Date.now());
  }
  setQuota(relayed.done.headers, relayed.quota);
  return relayed.done;
}
