// Cancelling a job: the upstream's where nobody else shares it.
import { Problem } from "../../errors.ts";
import type { Leaving } from "../images/flights.ts";
import { callUpstream } from "../upstream.ts";
import { readJob } from "../upstream-answer.ts";
import { answerJob } from "./answer.ts";
import { cachedJob } from "./cached-job.ts";
import { followJob, ownJob } from "./follow.ts";
import { handedOut } from "./handed-out.ts";
import type { Handle } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";
import { logJob } from "./logged-job.ts";
import { logUnsettled } from "./payers-meter.ts";

export async function cancel(call: JobCall): Promise<Response> {
  const job = await ownJob(call);
  const cached = await cachedJob(call, job);
  if (cached) return Response.json(cached);
  const left = await leaveShared(call, job);
  if (left === "over") return followJob(call, job, call.handle, { operation: "status" });
  if (left !== "alone") {
    logJob(call.exchange, "CANCELLED");
    return Response.json({ id: call.handle, status: "CANCELLED" });
  }
  await handedOut.flush(call, job);
  const segments = [call.target.name, "cancel", job.ref];
  const answered = await callUpstream(call.upstream, { method: "POST", segments, repeatable: true });
  return answerJob(call, await readJob(answered), job, call.handle, answered);
}

/** Who shares a job leaves it; only where nobody is left is the upstream's job there to be cancelled. */
export async function leaveShared(call: JobCall, { ref, admission }: Handle): Promise<Leaving> {
  const { flights, links } = call.images;
  if (!mayShare(call)) return "alone";
  const left = await flights.leave({ ...jobKey(call), ref }, admission).catch(() => {
    throw sharersUnknown;
  });
  if (left === "alone" || left === "over") return left;
  const now = Date.now();
  links.detached(admission, now);
  // What the leader reserved is settled at the job's true end: the others' picture is paid for.
  if (left !== "joined") return left;
  const cancelled = { admission, upstreamId: ref, status: "CANCELLED", costMicroUsd: 0 } as const;
  const settling = call.meter.settle({ ...cancelled, askedAt: now, seenAt: now, completedAt: now });
  call.waitUntil(settling.catch(logUnsettled));
  return left;
}

const sharersUnknown = new Problem("METER_UNAVAILABLE", "Whether others share this job cannot be told at the moment.", {
  "Retry-After": "1",
});

export function mayShare({ target: { model }, config }: JobCall): boolean {
  return model !== undefined && model.output !== "text" && config.imageReuse !== "never";
}
