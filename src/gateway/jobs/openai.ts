// OpenAI's routes, relayed: the body as it came, the answer as it comes, settled by what the answer says it cost.
import type { Context } from "hono";
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { Problem } from "../../errors.ts";
import { newAdmission } from "../admission.ts";
import { type OpenedBody, openBody, parseBody } from "../request-body.ts";
import { type Answered, callUpstream } from "../upstream.ts";
import { readObject } from "../upstream-answer.ts";
import { formatUsd, logUnsettled } from "./answer.ts";
import { outlive } from "./outlive.ts";
import { SeenStream } from "./seen-stream.ts";
import { costOf } from "./settling.ts";
import { admit, passed, payerTerms, setQuota, tookNothing } from "./submit.ts";
import type { JobEnv } from "./target.ts";
import { relayUnread, type UnreadBody } from "./unread-body.ts";

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
    const answered = await callUpstream(upstream, { method: "GET", segments, repeatable: true, waitMs: answerWaitMs });
    return c.json(await readObject(answered));
  }
  return outlive(c, relayPost(c, segments));
}

async function relayPost(c: Context<JobEnv>, segments: readonly string[]): Promise<Response> {
  const upstream = c.get("upstream");
  const opened = await openBody(c.req.raw, limits.runsyncPayloadBytes);
  const admission = newAdmission(Date.now());
  const admitted = await admit(c, {
    ...payerTerms(c),
    ...{
      admission,
      operation: "openai",
      reserveMicroUsd: reserve(c, opened),
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
  const body = relayedBody(opened);
  let answered: Answered | undefined;
  try {
    const signal = c.req.raw.signal;
    const accept = "application/json, text/event-stream";
    const call = { method: "POST", segments, repeatable: false, waitMs: answerWaitMs, accept, signal } as const;
    answered = await passed(body.sent, () =>
      callUpstream(upstream, { ...call, body: body.body, ...(body.sent && { sent: body.sent }) }),
    );
    const answer = isEventStream(answered)
      ? relayEvents(c, answered, body.length(), settle)
      : await relayWhole(c, answered, settle);
    setQuota(answer.headers, admitted);
    return answer;
  } catch (error) {
    // An answer that was lost may have cost something: what was reserved is assumed.
    const end = tookNothing(error, answered, body.cut)
      ? c.get("meter")().release(admission)
      : settle(null, answered !== undefined && !answered.response.ok);
    c.executionCtx.waitUntil(end.catch(logUnsettled));
    throw error;
  }
}

type Settle = (costMicroUsd: number | null, failed?: boolean) => Promise<unknown>;

interface RelayedBody {
  readonly body: Uint8Array | ReadableStream<Uint8Array>;
  /** Settles when a streamed body was sent. */
  readonly sent?: Promise<unknown>;
  readonly cut?: UnreadBody["cut"];
  /** Of a streamed body without a stated length as much as it may have, until it has passed. */
  readonly length: () => number;
}

function relayedBody(opened: OpenedBody): RelayedBody {
  if ("whole" in opened) return { body: opened.whole, length: () => opened.whole.byteLength };
  const { length, limitBytes } = opened.large;
  const { stream, sent, cut } = relayUnread(opened.large);
  let known = length ?? limitBytes;
  sent.then(
    (total) => {
      known = total;
    },
    () => {},
  );
  return { body: stream, sent, cut, length: () => known };
}

function reserve(c: Context<JobEnv>, opened: OpenedBody): number {
  const { model, maxMicroUsd } = c.get("target");
  // A larger call is relayed unread.
  if ("large" in opened) return maxMicroUsd;
  const checked = callSchema.safeParse(parseBody(opened.whole));
  if (!checked.success) throw new Problem("INVALID_REQUEST", "body: expected an object");
  return model ? Math.min(model.reserve(checked.data), maxMicroUsd) : maxMicroUsd;
}

function isEventStream({ response }: Answered): boolean {
  return response.ok && /^text\/event-stream\b/i.test(response.headers.get("Content-Type") ?? "");
}

async function relayWhole(c: Context<JobEnv>, answered: Answered, settle: Settle): Promise<Response> {
  const answer = await readObject(answered);
  const cost = costOf(answer, c.get("target"));
  c.executionCtx.waitUntil(settle(cost ?? null).catch(logUnsettled));
  if (cost === undefined) return c.json(answer);
  c.get("exchange").costMicroUsd = cost;
  return c.json(answer, 200, { "X-Cost": formatUsd(cost) });
}

/** One branch goes to the client untouched, the other is looked at for what it cost, in large reads. */
function relayEvents(
  c: Context<JobEnv>,
  { response, clock }: Answered,
  requestBytes: number,
  settle: Settle,
): Response {
  clock.stop();
  const headers = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" };
  if (!response.body) return new Response(null, { headers });
  const [client, seen] = response.body.tee();
  const cost = new SeenStream(requestBytes).read(seen, c.req.raw.signal).then((stream) => stream.cost(c.get("target")));
  c.executionCtx.waitUntil(cost.then((micro) => settle(micro ?? null)).catch(logUnsettled));
  const exchange = c.get("exchange");
  exchange.logAfter = cost.then((micro) => {
    if (micro !== undefined) exchange.costMicroUsd = micro;
  });
  return new Response(client, { headers });
}
