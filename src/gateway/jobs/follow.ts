// Follows a job: takes its owner's handle, asks the upstream by its own id, and answers under the handle again.
import { isFinal } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import type { ByteSource } from "../../json/byte-reader.ts";
import { refusal } from "../identity/scope.ts";
import { endedJob, type KeptResult, keptResult, provenName } from "../quota/kept-result.ts";
import type { KnownEnd } from "../quota/metering.ts";
import type { Answered } from "../upstream/upstream.ts";
import { openJob, openObject, readJob, readObject, type UpstreamJob } from "../upstream/upstream-answer.ts";
import { answerJob, presentJob } from "./answer.ts";
import { cachedJob } from "./cached-job.ts";
import { handedOut } from "./handed-out.ts";
import { handlesOf, type JobRef } from "./handle.ts";
import { type JobCall, jobKey, mayShare } from "./job-call.ts";
import { answerLarge, scanLarge } from "./large-answer.ts";
import { logJob } from "./logged-job.ts";
import { logUnsettled } from "./payers-meter.ts";
import { forgotten, isReported } from "./settling.ts";

/** Answers 404 for a handle that is not this caller's job of this model. */
export function ownJob(call: JobCall): JobRef {
  const job = handlesOf(call.config).verify(jobKey(call), call.handle);
  if (!job) throw new Problem("JOB_NOT_FOUND", "job not found");
  return job;
}

/** With a `ttl` the job's life is shortened or prolonged, unless others share the job: who may cancel it may do so. */
export async function status(call: JobCall, ttlMs?: number): Promise<Response> {
  const refused = ttlMs === undefined ? undefined : refusal(call.principal, "cancel", call.target.name);
  if (refused) throw refused;
  const job = ownJob(call);
  const isAlone = ttlMs !== undefined && (await closeToOthers(call, job));
  return followJob(call, job, call.handle, undefined, isAlone ? ttlMs : undefined);
}

/** Whether nobody shares the job, nor will. If the object that knows the sharers cannot be reached, somebody does. */
async function closeToOthers(call: JobCall, { upstreamId, admission }: JobRef): Promise<boolean> {
  if (!mayShare(call)) return true;
  return call.images.flights.close({ ...jobKey(call), upstreamId }, admission).catch(() => false);
}

export async function statusSync(call: JobCall, waitMs: number): Promise<Response> {
  const job = ownJob(call);
  return followJob(call, job, call.handle, waitMs);
}

/** With `waitMs` the upstream holds the call until the job has ended, the time is over, or the client has left. */
export async function followJob(
  call: JobCall,
  job: JobRef,
  handle: string,
  waitMs?: number,
  ttlMs?: number,
): Promise<Response> {
  const cached = cachedJob(call, job);
  if (cached) return Response.json(await cached);
  const { upstream, request } = call;
  const answered = await (waitMs === undefined
    ? upstream.status(job.upstreamId, undefined, ttlMs)
    : upstream.statusSync(job.upstreamId, waitMs, request.signal));
  try {
    return await answerOpened(call, answered, job, handle);
  } catch (error) {
    return fromKept(call, job, handle, error);
  }
}

/** The upstream's answer about a job, as its owner gets it: a small one whole, a large one as it comes. */
export async function answerOpened(call: JobCall, answered: Answered, job: JobRef, handle: string): Promise<Response> {
  const { askedAt } = answered;
  const opened = await openJob(answered);
  if ("large" in opened) return answerLarge(call, opened.large, job, askedAt);
  return answerJob(call, opened.whole, job, handle, { askedAt });
}

/** The upstream has forgotten the job; its result may have been kept for its owner, and the meter knows of its end. */
async function fromKept(call: JobCall, job: JobRef, handle: string, error: unknown): Promise<Response> {
  const gone = error instanceof Problem && error.code === "JOB_NOT_FOUND";
  if (!gone) throw error;
  const { admission, upstreamId } = job;
  const names = [admission, provenName({ admission, upstreamId })];
  const reading = Promise.all(names.map((name) => keptResult(call.env.IMAGES, name)));
  const [kept, known] = await Promise.all([call.timed("kv", reading), call.meter.lastWord(names)]);
  const end = owedEnd(known) ?? keptEnd([await keptOfRetry(call, job, known), ...kept], known) ?? bareEnd(known);
  if (!end) {
    // The meter takes it for open, and asks the upstream soon: its place is free then.
    if (known?.newest !== undefined && known.status === undefined) {
      call.waitUntil(call.meter.lookAgain({ admission, upstreamId }).catch(logUnsettled));
    }
    if (mayShare(call)) await call.images.flights.end({ ...jobKey(call), upstreamId }, admission).catch(() => {});
    throw error;
  }
  return answerJob(call, end, job, handle, { askedAt: forgotten });
}

/** A result that the meter still has to write to KV is newer than the one in KV. */
function owedEnd(known: KnownEnd | undefined): UpstreamJob | undefined {
  return known?.owed && endedJob(new TextDecoder().decode(known.owed));
}

/** What lies under the job's own name may be the end of an earlier run, which KV took late. */
async function keptOfRetry(call: JobCall, { admission }: JobRef, known: KnownEnd | undefined) {
  const { newest = admission } = known ?? {};
  return newest === admission ? undefined : call.timed("kv", keptResult(call.env.IMAGES, newest));
}

/**
 * A kept result of an earlier run counts if that run completed. If it failed and the job was retried since, it does
 * not.
 */
function keptEnd(kept: readonly (KeptResult | undefined)[], known: KnownEnd | undefined): UpstreamJob | undefined {
  const isOfLast = ({ run, job: { status } }: KeptResult) => {
    const isOfOther = run !== undefined && known?.newest !== undefined && run !== known.newest;
    return !isOfOther || status === "COMPLETED" || status === known?.status;
  };
  return kept.find((result) => result && isOfLast(result))?.job;
}

/** The meter knows how a job ended, not what it made: a COMPLETED job cannot be answered from its status alone. */
function bareEnd(known: KnownEnd | undefined): UpstreamJob | undefined {
  return known?.status && known.status !== "COMPLETED" ? { status: known.status } : undefined;
}

/** Chunks pass untouched: they carry no id. The payer's meter hears of the first before it leaves. */
export async function stream(call: JobCall, waitMs: number, format: string | undefined): Promise<Response> {
  const job = ownJob(call);
  // What the upstream tells is taken: a HEAD, which has no body, would lose it.
  if (call.request.method === "HEAD") return new Response(null, { headers: { "Content-Type": "application/json" } });
  const cached = cachedJob(call, job);
  if (cached) return Response.json(format === "array" ? [] : { status: (await cached).status, stream: [] });
  const answered = await call.upstream.stream(job.upstreamId, waitMs, call.request.signal);
  const opened = format === "array" ? { whole: await readObject(answered) } : await openObject(answered);
  if ("large" in opened) return streamLarge(call, job, opened.large);
  const { status, stream } = opened.whole;
  if (typeof status !== "string" || !Array.isArray(stream)) {
    throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is no stream.");
  }
  const handing = handedOut.chunks(call, job, stream);
  if (handing) await handing;
  logJob(call.exchange, status);
  if (isFinal(status)) {
    const settled = settleStreamed(call, job).catch(logUnsettled);
    call.waitUntil(settled);
    call.exchange.logAfter = settled;
  }
  return Response.json(format === "array" ? stream : { status, stream });
}

/**
 * The meter is told of the text by its length: of the first bytes before they leave, of the rest after it has passed.
 */
async function streamLarge(call: JobCall, job: JobRef, source: ByteSource): Promise<Response> {
  const begun = source.head.byteLength;
  const handing = handedOut.pieces(call, job, 1, begun);
  if (handing) await handing;
  const { stream, done } = scanLarge(source, call.upstream, { replaceId: () => undefined });
  const told = done.then(({ bytes }) => handedOut.pieces(call, job, 1, bytes - begun));
  call.waitUntil(told.catch(logUnsettled));
  return new Response(stream, { headers: { "Content-Type": "application/json" } });
}

/** The end of a stream does not say what the job cost or made, so its status is asked. */
async function settleStreamed(call: JobCall, job: JobRef): Promise<void> {
  if (isReported(job.admission, Date.now())) return;
  const answered = await call.upstream.status(job.upstreamId);
  await presentJob(call, await readJob(answered), job, call.handle, answered);
}

export async function numbers({ upstream }: JobCall, operation: "health" | "metrics"): Promise<Response> {
  return Response.json(await readObject(await upstream.numbers(operation)));
}
