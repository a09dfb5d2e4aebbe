// OpenAI's routes, relayed: the body as it came, the answer as it comes, settled by what the answer says it cost.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { Problem } from "../../errors.ts";
import { newAdmission } from "../admission.ts";
import { type OpenedBody, openBody, parseBody } from "../request-body.ts";
import { type Answered, callUpstream } from "../upstream.ts";
import { readObject } from "../upstream-answer.ts";
import { payerTerms } from "./admit-request.ts";
import { formatUsd } from "./answer.ts";
import { type JobCall, outlive } from "./job-call.ts";
import { type Attempt, metered, type Upload } from "./metered.ts";
import { logUnsettled } from "./payers-meter.ts";
import { setQuota } from "./quota-headers.ts";
import { SeenStream } from "./seen-stream.ts";
import { costOf } from "./settling.ts";
import { relayUnread } from "./unread-body.ts";

const routePattern = /^\/v1(\/[a-z0-9_-]{1,64}){1,4}$/;
const callSchema = z.looseObject({ stream: z.boolean().nullish() });
/** Generation may take its time before the first byte. */
const answerWaitMs = limits.waitMs.max;

export async function relayOpenAi(call: JobCall): Promise<Response> {
  const route = call.path.replace(/^\/v2\/[^/]+\/openai/, "");
  if (!routePattern.test(route)) throw new Problem("NOT_FOUND", "There is no such route.");
  const segments = [call.target.name, "openai", ...route.slice(1).split("/")];
  const upstream = call.upstream;
  if (call.request.method !== "POST") {
    const answered = await callUpstream(upstream, { method: "GET", segments, repeatable: true, waitMs: answerWaitMs });
    return Response.json(await readObject(answered));
  }
  return outlive(call, relayPost(call, segments));
}

async function relayPost(call: JobCall, segments: readonly string[]): Promise<Response> {
  const opened = await openBody(call.request, limits.runsyncPayloadBytes);
  const admission = newAdmission(Date.now());
  const body = relayedBody(opened);
  const request = {
    ...payerTerms(call),
    admission,
    operation: "openai",
    reserveMicroUsd: reserve(call, opened),
    inputBytes: body.length(),
    hasNotice: false,
    ttlMs: answerWaitMs,
    retentionMs: answerWaitMs,
    webhook: undefined,
    idempotency: undefined,
  } as const;
  const settle = (status: "COMPLETED" | "FAILED", costMicroUsd: number | null, { askedAt }: Answered) => {
    const seenAt = Date.now();
    const ending = { admission, upstreamId: null, status, costMicroUsd, askedAt, seenAt, completedAt: seenAt };
    call.waitUntil(call.meter.settle(ending).catch(logUnsettled));
  };
  const relayPaid = async (attempt: Attempt) => {
    const accept = "application/json, text/event-stream";
    const { signal } = call.request;
    const sending = { method: "POST", segments, repeatable: false, waitMs: answerWaitMs, accept, signal } as const;
    const answered = await attempt.ask(call.upstream, { ...sending, body: body.body }, body.upload);
    const complete = (cost: number | null) => settle("COMPLETED", cost, answered);
    if (isEventStream(answered)) return relayEvents(call, answered, body.length(), complete);
    return relayWhole(call, answered, complete);
  };
  /** An answer that was lost may have cost something: what was reserved is assumed. */
  const endLost = (answered: Answered | undefined) => {
    if (answered) settle(answered.response.ok ? "COMPLETED" : "FAILED", null, answered);
    else call.meter.doubt(admission);
  };
  const relayed = await metered(call, request, relayPaid, endLost);
  if ("replay" in relayed) throw new Problem("IN_PROGRESS", "The request with this key was made before.");
  setQuota(relayed.done.headers, relayed.quota);
  return relayed.done;
}

type Settle = (costMicroUsd: number | null) => void;

interface RelayedBody {
  readonly body: Uint8Array | ReadableStream<Uint8Array>;
  /** Of a streamed body. */
  readonly upload?: Upload;
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
  return { body: stream, upload: { sent, cut }, length: () => known };
}

function reserve(call: JobCall, opened: OpenedBody): number {
  const { model, maxMicroUsd } = call.target;
  // A larger call is relayed unread.
  if ("large" in opened) return maxMicroUsd;
  const checked = callSchema.safeParse(parseBody(opened.whole));
  if (!checked.success) throw new Problem("INVALID_REQUEST", "body: expected an object");
  return model ? Math.min(model.reserve(checked.data), maxMicroUsd) : maxMicroUsd;
}

function isEventStream({ response }: Answered): boolean {
  return response.ok && /^text\/event-stream\b/i.test(response.headers.get("Content-Type") ?? "");
}

async function relayWhole(call: JobCall, answered: Answered, settle: Settle): Promise<Response> {
  const answer = await readObject(answered);
  const cost = costOf(answer, call.target);
  settle(cost ?? null);
  if (cost === undefined) return Response.json(answer);
  call.exchange.costMicroUsd = cost;
  return Response.json(answer, { headers: { "X-Cost": formatUsd(cost) } });
}

/** One branch goes to the client untouched, the other is looked at for what it cost, in large reads. */
function relayEvents(call: JobCall, { response, clock }: Answered, requestBytes: number, settle: Settle): Response {
  clock.stop();
  const headers = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" };
  if (!response.body) return new Response(null, { headers });
  const [client, seen] = response.body.tee();
  const cost = new SeenStream(requestBytes).read(seen, call.request.signal).then((stream) => stream.cost(call.target));
  call.waitUntil(cost.then((micro) => settle(micro ?? null)));
  return new Response(client, { headers });
}
