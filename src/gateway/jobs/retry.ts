// Runs a failed job again: as the same upstream job if the caller has it alone, as a new one if others share it.
import { Problem } from "../../errors.ts";
import type { MeteredJob } from "../quota/metering.ts";
import type { Answered } from "../upstream/upstream.ts";
import { readJob } from "../upstream/upstream-answer.ts";
import { newAdmission } from "./admission-id.ts";
import { payerTerms } from "./admit-request.ts";
import { answerJob } from "./answer.ts";
import { cachedJob } from "./cached-job.ts";
import { wholeEnvelope } from "./envelope.ts";
import { ownJob } from "./follow.ts";
import type { JobRef } from "./handle.ts";
import { hookUrl } from "./hook-url.ts";
import { type JobCall, jobKey, mayShare, survivesDisconnect } from "./job-call.ts";
import { metered } from "./metered.ts";
import { setQuota } from "./quota-headers.ts";
import { ownLinksOf } from "./sent-links.ts";
import { beginAgain } from "./settling.ts";
import { submit } from "./submit.ts";

const notFailed = new Problem("NOT_RETRYABLE", "Only a failed job can be retried.");
const notHeld = new Problem(
  "NOT_RETRYABLE",
  "Other requests may share this job, and its input is not held any more: submit it again.",
);

export async function retry(call: JobCall): Promise<Response> {
  const job = ownJob(call);
  if (await cachedJob(call, job)) throw notFailed;
  const shared = mayShare(call) ? await sharingOf(call, job) : "alone";
  return shared === "alone" ? survivesDisconnect(call, runAgain(call, job)) : submitAnew(call, job, shared.request);
}

/**
 * If the object that knows the sharers cannot be reached, the job counts as unshared, so that the retry is not refused.
 */
function sharingOf(call: JobCall, { upstreamId, admission }: JobRef) {
  return call.images.flights.sharingOf({ ...jobKey(call), upstreamId }, admission).catch(() => "alone" as const);
}

/** Retries the same upstream job. It is admitted anew, with the first run's reservation. */
async function runAgain(call: JobCall, job: JobRef): Promise<Response> {
  const { meter, upstream, target } = call;
  const admission = newAdmission(Date.now());
  const known = await meter.job(job.admission).catch(() => undefined);
  const request = {
    ...payerTerms(call),
    admission,
    operation: "retry",
    retryOf: { admission: job.admission, upstreamId: job.upstreamId },
    reserveMicroUsd: known?.reservedMicroUsd || target.maxMicroUsd,
    inputBytes: known?.inputBytes ?? 0,
    // A retry's notice goes to the hook of the first run.
    hasNotice: hookUrl(call, admission) !== undefined,
    ttlMs: retryTtlMs,
    retentionMs: retryRetentionMs,
    webhook: undefined,
    idempotency: undefined,
  } as const;
  const ran = await metered(call, request, async (attempt) => {
    const answered = await attempt.ask(() => upstream.retry(job.upstreamId));
    const answer = await readJob(answered).catch((error: unknown) => {
      throw isRefusedForState(answered, error, known) ? notFailed : error;
    });
    return { answer, askedAt: answered.askedAt };
  });
  if ("replay" in ran) throw notFailed;
  const { answer, askedAt } = ran.done;
  beginAgain(job.admission, askedAt);
  call.images.links.forget(job.admission);
  await meter.bindRetry({ admission, upstreamId: job.upstreamId });
  const response = await answerJob(call, answer, job, call.handle, { askedAt });
  setQuota(response.headers, ran.quota);
  return response;
}

/** A retry has no body that could be at fault. What the upstream has forgotten, the meter may know the end of. */
function isRefusedForState({ response }: Answered, error: unknown, known: MeteredJob | undefined): boolean {
  if (!(error instanceof Problem)) return false;
  if (error.code === "JOB_NOT_FOUND") return known?.status === "COMPLETED" || known?.status === "CANCELLED";
  return error.code === "UPSTREAM_INVALID" && (response.status === 400 || response.status === 409);
}

/** What the upstream gives a job by default; a retry is asked about soon enough for a sync job's retention. */
const retryTtlMs = 24 * 60 * 60 * 1000;
const retryRetentionMs = 60 * 1000;

/** The shared job stays FAILED for the others; this caller gets and pays a new job. */
async function submitAnew(call: JobCall, job: JobRef, request: string | null): Promise<Response> {
  const { status } = await readJob(await call.upstream.status(job.upstreamId));
  if (status !== "FAILED" && status !== "TIMED_OUT") throw notFailed;
  if (request === null) throw notHeld;
  const rules = { target: call.target, webhookHosts: call.config.webhookHosts, ownLinks: ownLinksOf(call) };
  const envelope = wholeEnvelope(new TextEncoder().encode(request), rules);
  return submit(call, { operation: "run", waitMs: 0, envelope }, newAdmission(Date.now()));
}
