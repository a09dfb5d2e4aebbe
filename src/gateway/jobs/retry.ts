// Running a failed job again: the same upstream job for whoever has it alone, a new one where others share it.
import { Problem } from "../../errors.ts";
import { newAdmission } from "../admission.ts";
import { callUpstream } from "../upstream.ts";
import { readJob } from "../upstream-answer.ts";
import { payerTerms } from "./admit-request.ts";
import { answerJob } from "./answer.ts";
import { cachedJob } from "./cached-job.ts";
import { mayShare } from "./cancel.ts";
import { wholeEnvelope } from "./envelope.ts";
import { ownJob } from "./follow.ts";
import type { Handle } from "./handle.ts";
import { hookUrl } from "./hook-url.ts";
import { type JobCall, jobKey, outlive } from "./job-call.ts";
import { metered } from "./metered.ts";
import { setQuota } from "./quota-headers.ts";
import { beginAgain } from "./settling.ts";
import { submit } from "./submit.ts";

const notFailed = new Problem("NOT_RETRYABLE", "Only a failed job can be retried.");
const notHeld = new Problem(
  "NOT_RETRYABLE",
  "Other requests may share this job, and its input is not held any more: submit it again.",
);

export async function retry(call: JobCall): Promise<Response> {
  const job = await ownJob(call);
  if (await cachedJob(call, job)) throw notFailed;
  const shared = mayShare(call) ? await sharingOf(call, job) : "alone";
  return shared === "alone" ? outlive(call, runAgain(call, job)) : submitAnew(call, job, shared.request);
}

/** Whoever cannot be asked keeps nobody from a retry of his own. */
function sharingOf(call: JobCall, { ref, admission }: Handle) {
  return call.images.flights.sharingOf({ ...jobKey(call), ref }, admission).catch(() => "alone" as const);
}

/** Admitted anew at what the job was reserved at before. */
async function runAgain(call: JobCall, job: Handle): Promise<Response> {
  const { meter, upstream, target } = call;
  const admission = newAdmission(Date.now());
  const known = await meter.job(job.admission).catch(() => undefined);
  const request = {
    ...payerTerms(call),
    admission,
    operation: "retry",
    retryOf: { admission: job.admission, upstreamId: job.ref },
    reserveMicroUsd: known?.reservedMicroUsd || target.maxMicroUsd,
    inputBytes: known?.inputBytes ?? 0,
    // The upstream tells where it was told to tell of the first run.
    hasNotice: hookUrl(call, admission) !== undefined,
    ttlMs: retryTtlMs,
    retentionMs: retryRetentionMs,
    webhook: undefined,
    idempotency: undefined,
  } as const;
  const ran = await metered(call, request, async (attempt) => {
    const segments = [target.name, "retry", job.ref];
    const answered = await attempt.ask(upstream, { method: "POST", segments, repeatable: false });
    return { answer: await readJob(answered), askedAt: answered.askedAt };
  });
  if ("replay" in ran) throw notFailed;
  const { answer, askedAt } = ran.done;
  beginAgain(job.admission, askedAt);
  call.images.links.forget(job.admission);
  await meter.bindRetry({ admission, upstreamId: job.ref });
  const response = await answerJob(call, answer, job, call.handle, { askedAt });
  setQuota(response.headers, ran.quota);
  return response;
}

/** What the upstream gives a job by default; a retry is asked about soon enough for a sync job's retention. */
const retryTtlMs = 24 * 60 * 60 * 1000;
const retryRetentionMs = 60 * 1000;

/** The others' job stays as it ended; this caller's own pays for itself. */
async function submitAnew(call: JobCall, job: Handle, request: string | null): Promise<Response> {
  const segments = [call.target.name, "status", job.ref];
  const answered = await callUpstream(call.upstream, { method: "GET", segments, repeatable: true });
  const { status } = await readJob(answered);
  if (status !== "FAILED" && status !== "TIMED_OUT") throw notFailed;
  if (request === null) throw notHeld;
  const rules = { target: call.target, webhookHosts: call.config.webhookHosts };
  const envelope = wholeEnvelope(new TextEncoder().encode(request), rules);
  return submit(call, { operation: "run", waitMs: 0, envelope }, newAdmission(Date.now()));
}
