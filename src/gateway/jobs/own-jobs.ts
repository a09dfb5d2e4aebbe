// A user's own jobs of a model: listed, and cancelled while they wait. The operator sees and purges all.
import { inTurns } from "../../isolate/in-turns.ts";
import { orUnavailable } from "../quota/meter-stub.ts";
import type { MeteredJob } from "../quota/metering.ts";
import { openJob, readJob, readObject } from "../upstream/upstream-answer.ts";
import { presentJob } from "./answer.ts";
import { leaveShared } from "./cancel.ts";
import { handlesOf } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";

const purgedAtOnce = 50;
const callsAtOnce = 6;
/** How many open jobs of a page the upstream is asked about. */
const askedOfPage = 20;
const notListed = "Your jobs cannot be listed at the moment.";

export async function requests(call: JobCall, offset: number, limit: number): Promise<Response> {
  if (call.principal.kind === "operator")
    return Response.json(await readObject(await call.upstream.requests(offset, limit)));
  const { owner, model } = jobKey(call);
  const { jobs, total } = await orUnavailable(call.meter.jobs(owner, model, offset, limit), notListed);
  const handles = handlesOf(call.config);
  const open = jobs.filter(({ endedAt, upstreamId }) => endedAt === null && upstreamId !== null).slice(0, askedOfPage);
  const now = new Map<string, string>();
  await inTurns(open, callsAtOnce, async (job) => now.set(job.admission, await statusOf(call, job)));
  const listed = jobs.map((job) => {
    const id = job.upstreamId && handles.mint({ owner, model }, { ...job, upstreamId: job.upstreamId });
    return { ...describe(job), ...(now.has(job.admission) && { status: now.get(job.admission) }), id };
  });
  return Response.json({ requests: listed, total, offset, limit, hasMore: offset + jobs.length < total });
}

function describe({ status, admittedAt, endedAt }: MeteredJob) {
  const endedOn = endedAt === null ? {} : { endedAt: new Date(endedAt).toISOString() };
  return { status, submittedAt: new Date(admittedAt).toISOString(), ...endedOn };
}

/**
 * The job's status by the upstream. If its answer is too large to hold or does not come, the meter's last known status.
 */
async function statusOf(call: JobCall, { upstreamId, admission, status }: MeteredJob): Promise<string> {
  const job = { upstreamId: upstreamId ?? "", admission };
  try {
    const answered = await call.upstream.status(job.upstreamId);
    const opened = await openJob(answered);
    if ("whole" in opened) {
      const handle = handlesOf(call.config).mint(jobKey(call), job);
      return (await presentJob(call, opened.whole, job, handle, answered)).presented.status;
    }
    opened.large.reader.cancel("only its status is wanted").catch(() => {});
  } catch {
    // It is asked about again with the next list.
  }
  return status;
}

/** Cancels the caller's jobs that still wait, at most `purgedAtOnce` in one call, and answers how many. */
export async function purge(call: JobCall): Promise<Response> {
  if (call.principal.kind === "operator") return Response.json(await readObject(await call.upstream.purgeQueue()));
  const { owner, model } = jobKey(call);
  const open = await orUnavailable(call.meter.openJobs(owner, model, purgedAtOnce), notListed);
  const bound = open.flatMap((job) => (job.upstreamId === null ? [] : [{ ...job, upstreamId: job.upstreamId }]));
  const cancelled = await inTurns(bound, callsAtOnce, (job) => cancelWaiting(call, job));
  return Response.json({ removed: cancelled.filter(Boolean).length, status: "completed" });
}

async function cancelWaiting(call: JobCall, job: MeteredJob & { upstreamId: string }): Promise<boolean> {
  const { upstream } = call;
  try {
    const { status } = await readJob(await upstream.status(job.upstreamId));
    if (status !== "IN_QUEUE") return false;
    const left = await leaveShared(call, job);
    if (left !== "alone") return left === "lead" || left === "joined";
    const answered = await upstream.cancel(job.upstreamId);
    const handle = handlesOf(call.config).mint(jobKey(call), job);
    const { presented } = await presentJob(call, await readJob(answered), job, handle, answered);
    return presented.status === "CANCELLED";
  } catch {
    return false;
  }
}
