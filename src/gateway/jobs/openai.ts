// OpenAI's routes, relayed: the body as it came, the answer as it comes, settled by what the answer says it cost.
import type { Context } from "hono";
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { Problem } from "../../errors.ts";
import { newAdmission } from "../admission.ts";
import { parseBody, readBody, wholeBytes } from "../request-body.ts";
import { callUpstream } from "../upstream.ts";
import { readObject } from "../upstream-answer.ts";
import { formatUsd, logUnsettled } from "./answer.ts";
import { SeenStream } from "./seen-stream.ts";
import { costOf } from "./settling.ts";
import { admit, payerTerms, setQuota, tookNothing } from "./submit.ts";
import type { JobEnv } from "./target.ts";

const routePattern = /^\/v1(\/[a-z0-9_-]{1,64}){1,4}$/;
const callSchema = z.looseObject({ stream: z.boolean().nullish() });
/** Generation may take its time before the first byte. */
const answerWaitMs = limits.waitMs.max;

export async function relayOpenAi(c: Context<JobEnv>): Promise<Response> {
  const route = c.req.path.replace(/^\/v2\/[^/]+\/openai/, "");
  if (!routePattern.test(route)) throw new Problem("NOT_FOUND", "There is no such route.");
  const segments = [c.get("target").name, "openai", ...route.slice(1).split("/")];
  const upstream = c.get("upstream");
  if (c.req.method !== "POST") {
    const response = await callUpstream(upstream, { method: "GET", segments, repeatable: true, waitMs: answerWaitMs });
    return c.json(await readObject(response, upstream));
  }
  const body = await readBody(c.req.raw, limits.runsyncPayloadBytes);
  const admission = newAdmission(Date.now());
  const admitted = await admit(c, {
    ...payerTerms(c),
    ...{
      admission,
      operation: "openai",
      reserveMicroUsd: reserve(c, body),
      webhook: undefined,
      idempotency: undefined,
    },
    ...{ ttlMs: answerWaitMs, retentionMs: answerWaitMs },
  });
  const settle = (costMicroUsd: number | null, failed = false) => {
    const seenAt = Date.now();
    const status = failed ? ("FAILED" as const) : ("COMPLETED" as const);
    return c.get("meter")().settle({ admission, ref: null, status, costMicroUsd, seenAt, completedAt: seenAt });
  };
  let response: Response | undefined;
  try {
    const signal = c.req.raw.signal;
    const accept = "application/json, text/event-stream";
    const call = { method: "POST", segments, body, repeatable: false, waitMs: answerWaitMs, accept, signal } as const;
    response = await callUpstream(upstream, call);
    const answer = isEventStream(response)
      ? relayEvents(c, response, body, settle)
      : await relayWhole(c, response, settle);
    setQuota(answer.headers, admitted);
    return answer;
  } catch (error) {
    // An answer that was lost may have cost something: what was reserved is assumed.
    const end = tookNothing(error, response)
      ? c.get("meter")().release(admission)
      : settle(null, response !== undefined && !response.ok);
    c.executionCtx.waitUntil(end.catch(logUnsettled));
    throw error;
  }
}

type Settle = (costMicroUsd: number | null, failed?: boolean) => Promise<unknown>;

function reserve(c: Context<JobEnv>, body: Uint8Array): number {
  const { model, maxMicroUsd } = c.get("target");
  // A larger call is relayed unread.
  if (body.byteLength > wholeBytes) return maxMicroUsd;
  const checked = callSchema.safeParse(parseBody(body));
  if (!checked.success) throw new Problem("INVALID_REQUEST", "body: expected an object");
  return model ? Math.min(model.reserve(checked.data), maxMicroUsd) : maxMicroUsd;
}

function isEventStream(response: Response): boolean {
  return response.ok && /^text\/event-stream\b/i.test(response.headers.get("Content-Type") ?? "");
}

async function relayWhole(c: Context<JobEnv>, response: Response, settle: Settle): Promise<Response> {
  const answer = await readObject(response, c.get("upstream"));
  const cost = costOf(answer, c.get("target"));
  c.executionCtx.waitUntil(settle(cost ?? null).catch(logUnsettled));
  if (cost === undefined) return c.json(answer);
  c.get("exchange").costMicroUsd = cost;
  return c.json(answer, 200, { "X-Cost": formatUsd(cost) });
}

/** One branch goes to the client untouched, the other is looked at for what it cost, in large reads. */
function relayEvents(c: Context<JobEnv>, response: Response, request: Uint8Array, settle: Settle): Response {
  const headers = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" };
  if (!response.body) return new Response(null, { headers });
  const [client, seen] = response.body.tee();
  const cost = new SeenStream(request.byteLength)
    .read(seen, c.req.raw.signal)
    .then((stream) => stream.cost(c.get("target")));
  c.executionCtx.waitUntil(cost.then((micro) => settle(micro ?? null)).catch(logUnsettled));
  return new Response(client, { headers });
}
