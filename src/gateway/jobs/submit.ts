// Submitting a job: checked, admitted by the payer's meter, relayed with the server's key, bound to its owner.
import { limits } from "../../contract/limits.ts";
import { isFinal } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import type { Replay } from "../quota/metering.ts";
import { admitRequest, keyOf, refuseOtherBody, type Submission } from "./admit-request.ts";
import { answerJob } from "./answer.ts";
import { type Envelope, largeEnvelope, wholeEnvelope } from "./envelope.ts";
import { followJob } from "./follow.ts";
import { handlesOf } from "./handle.ts";
import { hookUrl } from "./hook-url.ts";
import { type JobCall, jobKey, survivesDisconnect } from "./job-call.ts";
import { answerLarge } from "./large-answer.ts";
import { logJob } from "./logged-job.ts";
import { metered } from "./metered.ts";
import { setQuota } from "./quota-headers.ts";
import { relay, type TakenJob } from "./relay.ts";
import { openBody } from "./request-body.ts";
import { ownLinksOf } from "./sent-links.ts";

/** A submission before it has an admission. */
export type SubmitOptions = Pick<Submission, "operation" | "waitMs" | "envelope">;

export async function openEnvelope(call: JobCall, operation: "run" | "runsync"): Promise<Envelope> {
  const limit = operation === "run" ? limits.runPayloadBytes : limits.runsyncPayloadBytes;
  const body = await openBody(call.request, limit);
  const rules = { target: call.target, webhookHosts: call.config.webhookHosts, ownLinks: ownLinksOf(call) };
  return "whole" in body ? wholeEnvelope(body.whole, rules) : largeEnvelope(body.large, rules);
}

export function submissionOf(call: JobCall, options: SubmitOptions, admission: string): Submission {
  const hook = hookUrl(call, admission);
  const notice = hook !== undefined && options.envelope.hasRoomFor(hook) ? hook : undefined;
  return { ...options, admission, notice };
}

export function submit(call: JobCall, options: SubmitOptions, admission: string): Promise<Response> {
  return survivesDisconnect(call, admitAndRelay(call, options, admission));
}

async function admitAndRelay(call: JobCall, options: SubmitOptions, admission: string): Promise<Response> {
  const submission = submissionOf(call, options, admission);
  const taken = await metered(call, await admitRequest(call, submission), (attempt) =>
    relay(call, submission, attempt),
  );
  if ("replay" in taken) return replay(call, options, taken.replay);
  const response = await answerTaken(call, admission, taken.done, options.envelope.usesBucket());
  setQuota(response.headers, taken.quota);
  return response;
}

async function answerTaken(
  call: JobCall,
  admission: string,
  taken: Awaited<ReturnType<typeof relay>>,
  usesBucket: boolean,
): Promise<Response> {
  const { askedAt } = taken;
  if ("large" in taken) return answerLarge(call, taken.large, { admission, usesBucket }, askedAt);
  const { job, upstreamId } = taken;
  if (usesBucket) await call.images.links.leaveAlone({ ...jobKey(call), upstreamId, admission });
  const handle = handlesOf(call.config).mint(jobKey(call), { upstreamId, admission });
  bindTaken(call, admission, taken);
  return await answerJob(call, job, { upstreamId, admission }, handle, { askedAt });
}

/**
 * Tells the meter the upstream's id: at once if the caller sent an idempotency key, since its repeated call must find
 * the job; else with the next call. A final answer is settled at once anyway, and that carries the id.
 */
export function bindTaken(call: JobCall, admission: string, { job, upstreamId }: TakenJob): void {
  const binding = { admission, upstreamId };
  if (keyOf(call) === undefined || isFinal(job.status)) call.meter.bind(binding);
  else call.meter.bindAtOnce(binding);
}

const neverKnown = new Problem(
  "UPSTREAM_TIMEOUT",
  "The model service never said what became of the first request with this Idempotency-Key: use another one.",
);

/** The same key and body: the job that the first call made. */
export async function replay(
  call: JobCall,
  { operation, waitMs, envelope }: SubmitOptions,
  first: Replay,
): Promise<Response> {
  await refuseOtherBody(envelope, first);
  const { upstreamId, admission } = first;
  if (upstreamId === null) throw neverKnown;
  const job = { upstreamId, admission };
  const handle = handlesOf(call.config).mint(jobKey(call), job);
  if (operation === "run") {
    logJob(call.exchange, "IN_QUEUE");
    return Response.json({ id: handle, status: "IN_QUEUE" });
  }
  return followJob(call, job, handle, waitMs);
}
