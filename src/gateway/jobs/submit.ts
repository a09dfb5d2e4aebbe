// Submitting a job: checked, admitted by the payer's meter, relayed with the server's key, bound to its owner.
import { limits } from "../../contract/limits.ts";
import { isFinal } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import type { Replay } from "../quota/metering.ts";
import { openBody } from "../request-body.ts";
import { admitRequest, keyOf, refuseOtherBody, type Submission } from "./admit-request.ts";
import { answerJob } from "./answer.ts";
import { type Envelope, largeEnvelope, wholeEnvelope } from "./envelope.ts";
import { followJob } from "./follow.ts";
import { handlesOf } from "./handle.ts";
import { hookUrl } from "./hook-url.ts";
import { type JobCall, jobKey, outlive } from "./job-call.ts";
import { answerLarge } from "./large-answer.ts";
import { logJob } from "./logged-job.ts";
import { metered } from "./metered.ts";
import { setQuota } from "./quota-headers.ts";
import { relay, type TakenJob } from "./relay.ts";

/** What is asked, before it has an admission. */
export type Asked = Pick<Submission, "operation" | "waitMs" | "envelope">;

export async function openEnvelope(call: JobCall, operation: "run" | "runsync"): Promise<Envelope> {
  const limit = operation === "run" ? limits.runPayloadBytes : limits.runsyncPayloadBytes;
  const body = await openBody(call.request, limit);
  const rules = { target: call.target, webhookHosts: call.config.webhookHosts };
  return "whole" in body ? wholeEnvelope(body.whole, rules) : largeEnvelope(body.large, rules);
}

export async function submissionOf(call: JobCall, asked: Asked, admission: string): Promise<Submission> {
  const hook = hookUrl(call, admission);
  const notice = hook !== undefined && asked.envelope.hasRoomFor(hook) ? hook : undefined;
  return { ...asked, admission, notice };
}

export function submit(call: JobCall, asked: Asked, admission: string): Promise<Response> {
  return outlive(call, takeIn(call, asked, admission));
}

async function takeIn(call: JobCall, asked: Asked, admission: string): Promise<Response> {
  const submission = await submissionOf(call, asked, admission);
  const taken = await metered(call, await admitRequest(call, submission), (attempt) =>
    relay(call, submission, attempt),
  );
  if ("replay" in taken) return replay(call, asked, taken.replay);
  const response = await answerTaken(call, admission, taken.done);
  setQuota(response.headers, taken.quota);
  return response;
}

async function answerTaken(
  call: JobCall,
  admission: string,
  taken: Awaited<ReturnType<typeof relay>>,
): Promise<Response> {
  const { askedAt } = taken;
  if ("large" in taken) return answerLarge(call, taken.large, { admission }, askedAt);
  const { job, ref } = taken;
  const handle = handlesOf(call.config).mint(jobKey(call), { ref, admission });
  bindTaken(call, admission, taken);
  return answerJob(call, job, { ref, admission }, handle, { askedAt });
}

/** An end that is told at once carries the id; without one a client that repeats its call must find the job. */
export function bindTaken(call: JobCall, admission: string, { job, ref }: TakenJob): void {
  const binding = { admission, upstreamId: ref };
  if (keyOf(call) === undefined || isFinal(job.status)) call.meter.bind(binding);
  else call.meter.bindAtOnce(binding);
}

const neverKnown = new Problem(
  "UPSTREAM_TIMEOUT",
  "The model service never said what became of the first request with this Idempotency-Key: use another one.",
);

/** The same key and body: the job that the first call made. */
export async function replay(call: JobCall, { operation, waitMs, envelope }: Asked, first: Replay): Promise<Response> {
  await refuseOtherBody(envelope, first);
  const { upstreamId: ref, admission } = first;
  if (ref === null) throw neverKnown;
  const job = { ref, admission };
  const handle = handlesOf(call.config).mint(jobKey(call), job);
  if (operation === "run") {
    logJob(call.exchange, "IN_QUEUE");
    return Response.json({ id: handle, status: "IN_QUEUE" });
  }
  return followJob(call, job, handle, { operation: "status-sync", query: `wait=${waitMs}`, waitMs });
}
