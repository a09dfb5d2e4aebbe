// A user's own jobs of a model: listed, and cancelled while they wait. The operator sees and purges all.
import { inTurns } from "../../isolate/in-turns.ts";
import { orUnavailable } from "../quota/meter-stub.ts";
import type { Ending, MeteredJob } from "../quota/metering.ts";
import type { Answered } from "../upstream/upstream.ts";
import { openJob, readJob, readObject } from "../upstream/upstream-answer.ts";
import { presentJob } from "./answer.ts";
import { leaveShared } from "./cancel.ts";
import { handlesOf } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";

const purgedAtOnce = 50;
/** How many open jobs a purge asks the upstream about: those that run are passed over. */
const askedOfPurge = 200;
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
    // A call of OpenAI's has no job that could be followed, but clients read an id in each row.
    const { upstreamId, admission } = job;
    const id = upstreamId === null ? admission : handles.mint({ owner, model }, { upstreamId, admission });
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
  const open = await orUnavailable(call.meter.openJobs(owner, model, askedOfPurge), notListed);
  const bound = open.flatMap((job) => (job.upstreamId === null ? [] : [{ ...job, upstreamId: job.upstreamId }]));
  let [tried, removed] = [0, 0];
  while (bound.length > 0 && tried < purgedAtOnce) {
    const turn = bound.splice(0, Math.min(callsAtOnce, purgedAtOnce - tried));
    const became = await Promise.all(turn.map((job) => cancelWaiting(call, job)));
    tried += became.filter((isCancelled) => isCancelled !== undefined).length;
    removed += became.filter(Boolean).length;
  }
  return Response.json({ removed, status: "completed" });
}

/** Undefined where it does not wait. */
async function cancelWaiting(call: JobCall, job: MeteredJob & { upstreamId: string }): Promise<boolean | undefined> {
  const { upstream, meter } = call;
  try {
    const asked = await upstream.status(job.upstreamId);
    const { status } = await readJob(asked);
    if (status !== "IN_QUEUE") {
      // The meter names it last from now on.
      if (status === "IN_PROGRESS" && job.status !== status) meter.bind(seenRunning(job, asked));
      return undefined;
    }
    const left = await leaveShared(call, job);
    if (left !== "alone") return left !== "over";
    const answered = await upstream.cancel(job.upstreamId);
    const handle = handlesOf(call.config).mint(jobKey(call), job);
    const { presented } = await presentJob(call, await readJob(answered), job, handle, answered);
    return presented.status === "CANCELLED";
  } catch {
    return false;
  }
}

function seenRunning({ admission, upstreamId }: MeteredJob, { askedAt }: Answered): Ending {
  const seenAt = Date.now();
  return { admission, upstreamId, status: "IN_PROGRESS", costMicroUsd: null, askedAt, seenAt, completedAt: seenAt };
}
