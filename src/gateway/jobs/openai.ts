// OpenAI's routes: what is served, and a call to one of them, admitted and relayed, or answered as it was before.
import { limits } from "../../contract/limits.ts";
import { Problem } from "../../errors.ts";
import type { OpenAiRoute } from "../../models/model.ts";
import { newAdmission } from "../admission.ts";
import { callUpstream } from "../upstream.ts";
import { readObject } from "../upstream-answer.ts";
import { idempotencyOf, payerTerms, refuseOtherBody } from "./admit-request.ts";
import { type JobCall, outlive } from "./job-call.ts";
import { repeatAnswer } from "./kept-answer.ts";
import { metered } from "./metered.ts";
import { openBodyOf } from "./openai-body.ts";
import { OpenAiRelay } from "./openai-relay.ts";
import { setQuota } from "./quota-headers.ts";

const routePattern = /^v1(\/[a-z0-9_-]{1,64}){1,4}$/;
const methods: Readonly<Record<OpenAiRoute, "GET" | "POST">> = { "chat/completions": "POST", models: "GET" };
/** Generation may take its time before the first byte. */
const answerWaitMs = limits.waitMs.max;

export async function relayOpenAi(call: JobCall): Promise<Response> {
  const { method } = call.request;
  const route = call.path.replace(/^\/v2\/[^/]+\/openai\//, "");
  if (!routePattern.test(route) || !isServed(call, route.slice("v1/".length))) {
    throw new Problem("NOT_FOUND", `${call.target.name} has no such route: ${method} ${route}`);
  }
  const segments = [call.target.name, "openai", ...route.split("/")];
  if (method === "POST") return outlive(call, relayPost(call, route, segments));
  const reading = { method: "GET", segments, repeatable: true, waitMs: answerWaitMs } as const;
  return Response.json(await readObject(await callUpstream(call.upstream, reading)));
}

/** An endpoint that the operator opened at a price may have any route; a model of the catalog has those that it lists. */
function isServed({ target: { model }, request }: JobCall, route: string): boolean {
  if (!model) return true;
  return model.openAiRoutes.some((known) => known === route && methods[known] === request.method);
}

async function relayPost(call: JobCall, route: string, segments: readonly string[]): Promise<Response> {
  const body = await openBodyOf(call);
  const admission = newAdmission(Date.now());
  const idempotency = await idempotencyOf(call, `openai/${route}`, body);
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
    (attempt) => relay.relay(attempt, { method: "POST", segments, repeatable: false, waitMs: answerWaitMs }),
    (answered) => relay.endLost(answered),
  );
  if ("replay" in relayed) {
    await refuseOtherBody(body, relayed.replay);
    return repeatAnswer(call.env.IMAGES, relayed.replay.admission, Date.now());
  }
  setQuota(relayed.done.headers, relayed.quota);
  return relayed.done;
}
