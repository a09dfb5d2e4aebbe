// A user's own jobs of a model: listed, and cancelled while they wait. The operator sees and purges all.
import { Problem } from "../../errors.ts";
import type { MeteredJob } from "../quota/metering.ts";
import { callUpstream } from "../upstream.ts";
import { readJob, readObject } from "../upstream-answer.ts";
import { leaveShared } from "./cancel.ts";
import { handlesOf } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";
import { endingOf, settle } from "./settling.ts";

const purgedAtOnce = 50;
const callsAtOnce = 6;

export async function requests(call: JobCall, offset: number, limit: number): Promise<Response> {
  if (call.principal.kind === "operator")
    return relayForOperator(call, "GET", "requests", `offset=${offset}&limit=${limit}`);
  const { owner, model } = jobKey(call);
  const { jobs, total } = await reached(call.meter.jobs(owner, model, offset, limit));
  const handles = handlesOf(call.config);
  const listed = await Promise.all(
    jobs.map(async (job) => ({ ...describe(job), id: await handleOf(handles, { owner, model }, job) })),
  );
  return Response.json({ requests: listed, total, offset, limit, hasMore: offset + jobs.length < total });
}

function describe({ status, admittedAt, endedAt }: MeteredJob) {
  const endedOn = endedAt === null ? {} : { endedAt: new Date(endedAt).toISOString() };
  return { status, submittedAt: new Date(admittedAt).toISOString(), ...endedOn };
}

/** A job whose id the upstream has not told yet has no handle. */
function handleOf(
  handles: ReturnType<typeof handlesOf>,
  key: { owner: string; model: string },
  { upstreamId: ref, admission }: MeteredJob,
) {
  return ref === null ? Promise.resolve(null) : handles.mint(key, { ref, admission });
}

/** Cancels what still waits, at most so many a call, and says how many it were. */
export async function purge(call: JobCall): Promise<Response> {
  if (call.principal.kind === "operator") return relayForOperator(call, "POST", "purge-queue", "");
  const { owner, model } = jobKey(call);
  const open = await reached(call.meter.openJobs(owner, model, purgedAtOnce));
  const bound = open.flatMap((job) => (job.upstreamId === null ? [] : [{ ...job, ref: job.upstreamId }]));
  let removed = 0;
  for (let at = 0; at < bound.length; at += callsAtOnce) {
    const batch = bound.slice(at, at + callsAtOnce).map((job) => cancelWaiting(call, job));
    removed += (await Promise.all(batch)).filter(Boolean).length;
  }
  return Response.json({ removed, status: "completed" });
}

async function cancelWaiting(call: JobCall, job: MeteredJob & { ref: string }): Promise<boolean> {
  const upstream = call.upstream;
  const ask = async (method: "GET" | "POST", operation: string) => {
    const segments = [job.model, operation, job.ref];
    const answered = await callUpstream(upstream, { method, segments, repeatable: true });
    return { job: await readJob(answered), askedAt: answered.askedAt };
  };
  try {
    const asked = await ask("GET", "status");
    if (asked.job.status !== "IN_QUEUE") return false;
    const left = await leaveShared(call, job);
    if (left !== "alone") return left === "lead" || left === "joined";
    const { job: cancelled, askedAt } = await ask("POST", "cancel");
    const ending = endingOf(cancelled, call.target, job, { askedAt, seenAt: Date.now() });
    const id = handlesOf(call.config).mint(jobKey(call), job);
    if (ending) await settle(call.meter, ending, () => JSON.stringify({ ...cancelled, id }));
    return cancelled.status === "CANCELLED";
  } catch {
    return false;
  }
}

async function relayForOperator(call: JobCall, method: "GET" | "POST", operation: string, query: string) {
  const upstream = call.upstream;
  const segments = [call.target.name, operation];
  const answered = await callUpstream(upstream, { method, segments, query, repeatable: method === "GET" });
  return Response.json(await readObject(answered));
}

function reached<T>(answer: Promise<T>): Promise<T> {
  return answer.catch(() => {
    throw new Problem("METER_UNAVAILABLE", "Your jobs cannot be listed at the moment.", { "Retry-After": "1" });
  });
}
