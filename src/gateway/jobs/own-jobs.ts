// A user's own jobs of a model: listed, and cancelled while they wait. The operator sees and purges all.
import type { Context } from "hono";
import { Problem } from "../../errors.ts";
import type { MeteredJob } from "../quota/metering.ts";
import { callUpstream } from "../upstream.ts";
import { readJob, readObject } from "../upstream-answer.ts";
import { getOff } from "./follow.ts";
import { handlesOf } from "./handle.ts";
import { endingOf, settle } from "./settling.ts";
import { type JobEnv, jobKey } from "./target.ts";

const purgedAtOnce = 50;
const callsAtOnce = 6;

export async function requests(c: Context<JobEnv>, offset: number, limit: number): Promise<Response> {
  if (c.get("principal").kind === "operator")
    return relayForOperator(c, "GET", "requests", `offset=${offset}&limit=${limit}`);
  const { owner, model } = jobKey(c);
  const { jobs, total } = await reached(c.get("meter")().jobs(owner, model, offset, limit));
  const handles = handlesOf(c.get("config"));
  const listed = await Promise.all(
    jobs.map(async (job) => ({ ...describe(job), id: await handleOf(handles, { owner, model }, job) })),
  );
  return c.json({ requests: listed, total, offset, limit, hasMore: offset + jobs.length < total });
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
export async function purge(c: Context<JobEnv>): Promise<Response> {
  if (c.get("principal").kind === "operator") return relayForOperator(c, "POST", "purge-queue", "");
  const { owner, model } = jobKey(c);
  const open = await reached(c.get("meter")().openJobs(owner, model, purgedAtOnce));
  const bound = open.flatMap((job) => (job.upstreamId === null ? [] : [{ ...job, ref: job.upstreamId }]));
  let removed = 0;
  for (let at = 0; at < bound.length; at += callsAtOnce) {
    const batch = bound.slice(at, at + callsAtOnce).map((job) => cancelWaiting(c, job));
    removed += (await Promise.all(batch)).filter(Boolean).length;
  }
  return c.json({ removed, status: "completed" });
}

async function cancelWaiting(c: Context<JobEnv>, job: MeteredJob & { ref: string }): Promise<boolean> {
  const upstream = c.get("upstream");
  const ask = async (method: "GET" | "POST", operation: string) => {
    const segments = [job.model, operation, job.ref];
    return readJob(await callUpstream(upstream, { method, segments, repeatable: true }));
  };
  try {
    const { status } = await ask("GET", "status");
    if (status !== "IN_QUEUE") return false;
    if (await getOff(c, job)) return true;
    const cancelled = await ask("POST", "cancel");
    const ending = endingOf(cancelled, c.get("target"), job, Date.now());
    const id = await handlesOf(c.get("config")).mint(jobKey(c), job);
    if (ending) await settle(c.get("meter"), ending, () => JSON.stringify({ ...cancelled, id }));
    return cancelled.status === "CANCELLED";
  } catch {
    return false;
  }
}

async function relayForOperator(c: Context<JobEnv>, method: "GET" | "POST", operation: string, query: string) {
  const upstream = c.get("upstream");
  const segments = [c.get("target").name, operation];
  const answered = await callUpstream(upstream, { method, segments, query, repeatable: method === "GET" });
  return c.json(await readObject(answered));
}

function reached<T>(answer: Promise<T>): Promise<T> {
  return answer.catch(() => {
    throw new Problem("METER_UNAVAILABLE", "Your jobs cannot be listed at the moment.", { "Retry-After": "1" });
  });
}
