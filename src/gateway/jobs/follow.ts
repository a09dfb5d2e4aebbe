// Following a job: its owner's handle in, the upstream's id out, and the answer back under the handle.
import { isFinal } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import type { ByteSource } from "../../wire/byte-reader.ts";
import { endedJob, keptResult, provenName } from "../kept-result.ts";
import { type Call, callUpstream } from "../upstream.ts";
import { openJob, openObject, readJob, readObject } from "../upstream-answer.ts";
import { answerJob, presentJob } from "./answer.ts";
import { cachedJob } from "./cached-job.ts";
import { handedOut } from "./handed-out.ts";
import { type Handle, handlesOf } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";
import { answerLarge, scanLarge } from "./large-answer.ts";
import { logJob } from "./logged-job.ts";
import { logUnsettled } from "./payers-meter.ts";
import { isTold } from "./settling.ts";

/** Whatever is not this caller's job of this model is unknown. */
export async function ownJob(call: JobCall): Promise<Handle> {
  const job = handlesOf(call.config).verify(jobKey(call), call.handle);
  if (!job) throw new Problem("JOB_NOT_FOUND", "job not found");
  return job;
}

export async function status(call: JobCall): Promise<Response> {
  const job = await ownJob(call);
  return followJob(call, job, call.handle, { operation: "status" });
}

export async function statusSync(call: JobCall, waitMs: number): Promise<Response> {
  const job = await ownJob(call);
  const { signal } = call.request;
  return followJob(call, job, call.handle, { operation: "status-sync", query: `wait=${waitMs}`, waitMs, signal });
}

interface Following extends Pick<Partial<Call>, "query" | "waitMs" | "signal"> {
  readonly operation: "status" | "status-sync";
}

export async function followJob(
  call: JobCall,
  job: Handle,
  handle: string,
  { operation, ...how }: Following,
): Promise<Response> {
  const cached = await cachedJob(call, job);
  if (cached) return Response.json(cached);
  const segments = [call.target.name, operation, job.ref];
  const answered = await callUpstream(call.upstream, { method: "GET", segments, repeatable: true, ...how });
  const { askedAt } = answered;
  try {
    const opened = await openJob(answered);
    if ("large" in opened) return await answerLarge(call, opened.large, job, askedAt);
    return await answerJob(call, opened.whole, job, handle, { askedAt });
  } catch (error) {
    return fromKept(call, job, handle, error);
  }
}

/** The upstream has forgotten the job; its result may have been kept for its owner, and the meter knows of its end. */
async function fromKept(call: JobCall, job: Handle, handle: string, error: unknown): Promise<Response> {
  const gone = error instanceof Problem && error.code === "JOB_NOT_FOUND";
  if (!gone) throw error;
  const { admission, ref } = job;
  const names = [admission, provenName({ admission, upstreamId: ref })];
  const [named, proven] = await Promise.all(names.map((name) => keptResult(call.env.IMAGES, name)));
  const kept = named ?? proven ?? endedJob(await call.meter.lastWord(names));
  if (!kept) throw error;
  return answerJob(call, kept, job, handle, { askedAt: 0 });
}

/** Chunks pass untouched: they carry no id. The payer's meter hears of the first before it leaves. */
export async function stream(call: JobCall, waitMs: number, format: string | undefined): Promise<Response> {
  const job = await ownJob(call);
  const cached = await cachedJob(call, job);
  if (cached) return Response.json(format === "array" ? [] : { status: cached.status, stream: [] });
  const answered = await callUpstream(call.upstream, {
    method: "GET",
    segments: [call.target.name, "stream", job.ref],
    query: `wait=${waitMs}`,
    waitMs,
    // A chunk is handed out once: a second try could lose what the first one took.
    repeatable: false,
    signal: call.request.signal,
  });
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

/** What it holds is told by its length: as much of it as came at once before it leaves, the rest when that has passed. */
async function streamLarge(call: JobCall, job: Handle, source: ByteSource): Promise<Response> {
  const begun = source.head.byteLength;
  const handing = handedOut.pieces(call, job, 1, begun);
  if (handing) await handing;
  const { stream, done } = scanLarge(source, call.upstream, { replace: () => undefined });
  const told = done.then(({ bytes }) => handedOut.pieces(call, job, 1, bytes - begun));
  call.waitUntil(told.catch(logUnsettled));
  return new Response(stream, { headers: { "Content-Type": "application/json" } });
}

/** A stream says that the job is at its end, not what it cost nor made: the job's status does. */
async function settleStreamed(call: JobCall, job: Handle): Promise<void> {
  if (isTold(job.admission, Date.now())) return;
  const segments = [call.target.name, "status", job.ref];
  const answered = await callUpstream(call.upstream, { method: "GET", segments, repeatable: true });
  await presentJob(call, await readJob(answered), job, call.handle, answered);
}

export async function health(call: JobCall): Promise<Response> {
  const segments = [call.target.name, "health"];
  const answered = await callUpstream(call.upstream, { method: "GET", segments, repeatable: true });
  return Response.json(await readObject(answered));
}
