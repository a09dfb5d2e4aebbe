// Cancels a job: at the upstream if no other caller shares it, else only for this caller.
import { Problem } from "../../errors.ts";
import type { Leaving } from "../media/flights.ts";
import { cachedJob } from "./cached-job.ts";
import { answerOpened, followJob, ownJob } from "./follow.ts";
import { handedOut } from "./handed-out.ts";
import type { JobRef } from "./handle.ts";
import { type JobCall, jobKey, mayShare } from "./job-call.ts";
import { readFacts } from "./large-answer.ts";
import { logJob } from "./logged-job.ts";
import { logUnsettled } from "./payers-meter.ts";

export async function cancel(call: JobCall): Promise<Response> {
  const job = ownJob(call);
  const cached = await cachedJob(call, job);
  if (cached) return Response.json({ id: cached.id, status: cached.status });
  const left = await leaveShared(call, job);
  if (left === "over") return briefly(call, await followJob(call, job, call.handle));
  if (left !== "alone") {
    logJob(call.exchange, "CANCELLED");
    return Response.json({ id: call.handle, status: "CANCELLED" });
  }
  await handedOut.flush(call, job);
  return briefly(call, await answerOpened(call, await call.upstream.cancel(job.upstreamId), job, call.handle));
}

/** Read to its end, since that settles the job. What it made is asked for by its status. */
async function briefly({ upstream }: JobCall, whole: Response): Promise<Response> {
  const reader = whole.body?.getReader({ mode: "byob" });
  const { job } = reader ? await readFacts({ head: new Uint8Array(), reader }, upstream) : {};
  if (!job) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not a job.");
  return new Response(JSON.stringify({ id: job.id, status: job.status }), whole);
}

/**
 * Takes the caller off a shared job. Answers "alone" when no other caller is left: only then may the upstream's job be
 * cancelled.
 */
export async function leaveShared(call: JobCall, { upstreamId, admission }: JobRef): Promise<Leaving> {
  const { flights, links } = call.images;
  if (!mayShare(call)) return "alone";
  const left = await flights.leave({ ...jobKey(call), upstreamId }, admission).catch(() => {
    throw sharersUnknown;
  });
  if (left === "alone" || left === "over") return left;
  const now = Date.now();
  links.detached(admission, now);
  // The leader's reservation stays until the job's real end: it pays for the picture that the others get.
  if (left !== "joined") return left;
  const settling = call.meter.settle({
    admission,
    upstreamId,
    status: "CANCELLED",
    costMicroUsd: 0,
    askedAt: now,
    seenAt: now,
    completedAt: now,
  });
  call.waitUntil(settling.catch(logUnsettled));
  return left;
}

const sharersUnknown = new Problem("METER_UNAVAILABLE", "Whether others share this job cannot be told at the moment.", {
  "Retry-After": "1",
});
