// Following a job: its owner's handle in, the upstream's id out, and the answer back under the handle.
import type { Context } from "hono";
import { isFinal } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import type { ByteSource } from "../../wire/body.ts";
import { newAdmission } from "../admission.ts";
import { keptResult } from "../kept-result.ts";
import { type Answered, type Call, callUpstream } from "../upstream.ts";
import { openJob, openObject, readJob, readObject, type UpstreamJob } from "../upstream-answer.ts";
import { answerJob, logUnsettled, presentJob } from "./answer.ts";
import { cachedJob } from "./cached-job.ts";
import { type Handle, handlesOf } from "./handle.ts";
import { answerLarge, scanLarge } from "./large-answer.ts";
import { logJob } from "./logged-job.ts";
import { outlive } from "./outlive.ts";
import { forgetEnding, isTold } from "./settling.ts";
import { admit, payerTerms, setQuota, tookNothing } from "./submit.ts";
import { type JobEnv, jobKey } from "./target.ts";

/** Whatever is not this caller's job of this model is unknown. */
export async function ownJob(c: Context<JobEnv>): Promise<Handle> {
  const job = await handlesOf(c.get("config")).verify(jobKey(c), c.req.param("job") ?? "");
  if (!job) throw new Problem("JOB_NOT_FOUND", "job not found");
  return job;
}

export async function status(c: Context<JobEnv>): Promise<Response> {
  return follow(c, "status", {});
}

export async function statusSync(c: Context<JobEnv>, waitMs: number): Promise<Response> {
  return follow(c, "status-sync", { waitMs, query: `wait=${waitMs}`, signal: c.req.raw.signal });
}

async function follow(c: Context<JobEnv>, operation: string, how: Partial<Call>): Promise<Response> {
  const job = await ownJob(c);
  const cached = await cachedJob(c, job);
  if (cached) return c.json(cached);
  const upstream = c.get("upstream");
  const segments = [c.get("target").name, operation, job.ref];
  const answered = await callUpstream(upstream, { method: "GET", segments, repeatable: true, ...how });
  try {
    const opened = await openJob(answered);
    if ("large" in opened) return await answerLarge(c, opened.large, job);
    return await answerJob(c, opened.whole, job, c.req.param("job") ?? "");
  } catch (error) {
    return fromKept(c, job, error);
  }
}

/** The upstream has forgotten the job; its result may have been kept for its owner. */
async function fromKept(c: Context<JobEnv>, job: Handle, error: unknown): Promise<Response> {
  const gone = error instanceof Problem && error.code === "JOB_NOT_FOUND";
  const kept = gone ? await keptResult(c.env.IMAGES, job.admission) : null;
  if (kept === null) throw error;
  return answerJob(c, JSON.parse(kept) as UpstreamJob, job, c.req.param("job") ?? "");
}

/** Chunks pass untouched: they carry no id. */
export async function stream(c: Context<JobEnv>, waitMs: number, format: string | undefined): Promise<Response> {
  const job = await ownJob(c);
  const cached = await cachedJob(c, job);
  if (cached) return c.json(format === "array" ? [] : { status: cached.status, stream: [] });
  const upstream = c.get("upstream");
  const answered = await callUpstream(upstream, {
    ...{ method: "GET", segments: [c.get("target").name, "stream", job.ref], query: `wait=${waitMs}`, waitMs },
    // A chunk is handed out once: a second try could lose what the first one took.
    repeatable: false,
    signal: c.req.raw.signal,
  });
  const opened = format === "array" ? { whole: await readObject(answered) } : await openObject(answered);
  if ("large" in opened) return streamLarge(c, opened.large);
  const { status, stream } = opened.whole;
  if (typeof status !== "string" || !Array.isArray(stream)) {
    throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is no stream.");
  }
  logJob(c, status);
  if (isFinal(status)) {
    const settled = settleStreamed(c, job).catch(logUnsettled);
    c.executionCtx.waitUntil(settled);
    c.get("exchange").logAfter = settled;
  }
  return c.json(format === "array" ? stream : { status, stream });
}

function streamLarge(c: Context<JobEnv>, source: ByteSource): Response {
  const { stream, done } = scanLarge(source, c.get("upstream"), { replace: () => undefined });
  c.executionCtx.waitUntil(done);
  return c.body(stream, 200, { "Content-Type": "application/json" });
}

/** A stream says that the job is at its end, not what it cost nor made: the job's status does. */
async function settleStreamed(c: Context<JobEnv>, job: Handle): Promise<void> {
  if (isTold(job.admission, Date.now())) return;
  const upstream = c.get("upstream");
  const segments = [c.get("target").name, "status", job.ref];
  const answered = await callUpstream(upstream, { method: "GET", segments, repeatable: true });
  await presentJob(c, await readJob(answered), job, c.req.param("job") ?? "");
}

export async function cancel(c: Context<JobEnv>): Promise<Response> {
  const job = await ownJob(c);
  const cached = await cachedJob(c, job);
  if (cached) return c.json(cached);
  if (await getOff(c, job)) {
    logJob(c, "CANCELLED");
    return c.json({ id: c.req.param("job"), status: "CANCELLED" });
  }
  const upstream = c.get("upstream");
  const segments = [c.get("target").name, "cancel", job.ref];
  const answered = await callUpstream(upstream, { method: "POST", segments, repeatable: true });
  return answerJob(c, await readJob(answered), job, c.req.param("job") ?? "");
}

/** Who shares a job gets off it; the last one's cancel is the upstream's. */
export async function getOff(c: Context<JobEnv>, { ref, admission }: Handle): Promise<boolean> {
  const { flights, links } = c.get("images");
  if (!mayShare(c)) return false;
  const rode = await flights.leave({ ...jobKey(c), ref }, admission).catch(() => undefined);
  if (rode === undefined) return false;
  const now = Date.now();
  links.detached(admission, now);
  // What the leader reserved is settled at the job's true end: the others' picture is paid for.
  if (rode === "lead") return true;
  const ending = { admission, ref, status: "CANCELLED", costMicroUsd: 0, seenAt: now, completedAt: now } as const;
  c.executionCtx.waitUntil(c.get("meter")().settle(ending).catch(logUnsettled));
  return true;
}

function mayShare(c: Context<JobEnv>): boolean {
  const { model } = c.get("target");
  return model !== undefined && model.output !== "text" && c.get("config").imageReuse !== "never";
}

export async function retry(c: Context<JobEnv>): Promise<Response> {
  const job = await ownJob(c);
  if (await cachedJob(c, job)) throw new Problem("NOT_RETRYABLE", "Only a failed job can be retried.");
  return outlive(c, runAgain(c, job));
}

/** Admitted anew at what the job was reserved at before; who rode along reserved nothing then. */
async function runAgain(c: Context<JobEnv>, job: Handle): Promise<Response> {
  const upstream = c.get("upstream");
  const meter = c.get("meter")();
  const admission = newAdmission(Date.now());
  const known = await meter.job(job.admission).catch(() => undefined);
  const admitted = await admit(c, {
    ...payerTerms(c),
    ...{ admission, operation: "retry", reserveMicroUsd: known?.reservedMicroUsd || c.get("target").maxMicroUsd },
    ...{ ttlMs: retryTtlMs, retentionMs: retryRetentionMs, webhook: undefined, idempotency: undefined },
  });
  let answered: Answered | undefined;
  try {
    const segments = [c.get("target").name, "retry", job.ref];
    answered = await callUpstream(upstream, { method: "POST", segments, repeatable: false });
    const answer = await readJob(answered);
    forgetEnding(job.admission);
    c.get("images").links.forget(job.admission);
    c.executionCtx.waitUntil(meter.bind(admission, job.ref).catch(logUnsettled));
    const body = await answerJob(c, answer, job, c.req.param("job") ?? "");
    setQuota(body.headers, admitted);
    return body;
  } catch (error) {
    if (tookNothing(error, answered)) c.executionCtx.waitUntil(meter.release(admission).catch(logUnsettled));
    throw error;
  }
}

/** What the upstream gives a job by default; a retry is asked about soon enough for a sync job's retention. */
const retryTtlMs = 24 * 60 * 60 * 1000;
const retryRetentionMs = 60 * 1000;

export async function health(c: Context<JobEnv>): Promise<Response> {
  const upstream = c.get("upstream");
  const segments = [c.get("target").name, "health"];
  const answered = await callUpstream(upstream, { method: "GET", segments, repeatable: true });
  return c.json(await readObject(answered));
}
