// A job's answer that is too large to hold: streamed to its owner under the handle, settled by what was seen of it.
// A media URL in it stays the model service's own: its key would have to go out before the job's end is known.
import { mediaFields } from "../../contract/media-fields.ts";
import { Problem } from "../../errors.ts";
import { once } from "../../isolate/once.ts";
import { type AnswerFacts, type AnswerScan, scanAnswer } from "../../json/answer-scan.ts";
import type { ByteSource } from "../../json/byte-reader.ts";
import type { RelayFault } from "../../json/json-relay.ts";
import { keepUnder, keptBytes, resultNames } from "../quota/kept-result.ts";
import type { Ending } from "../quota/metering.ts";
import { logOwnKey } from "../upstream/own-keys.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { answerLimitBytes, readJob, type UpstreamJob } from "../upstream/upstream-answer.ts";
import { answerJob, originOf } from "./answer.ts";
import { handedOut } from "./handed-out.ts";
import { handlesOf, isUpstreamId, type JobRef } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";
import { logJob } from "./logged-job.ts";
import { measureAsItPasses } from "./passing-body.ts";
import { logUnsettled } from "./payers-meter.ts";
import { namesNoJob } from "./relay.ts";
import { endingOf, isReported, settle } from "./settling.ts";

/** The id of a submitted job stands in the answer, so it is unknown until it has streamed by. */
type Following = { readonly admission: string; readonly upstreamId?: string; readonly usesBucket?: boolean };

export async function answerLarge(
  call: JobCall,
  source: ByteSource,
  job: Following,
  askedAt: number,
): Promise<Response> {
  const { admission, upstreamId } = job;
  const seenAt = Date.now();
  if (upstreamId !== undefined && (await isDetached(call, { admission, upstreamId }, seenAt)))
    return answerDetached(call, source, { admission, upstreamId }, askedAt);
  const begun = source.head.byteLength;
  const handing =
    upstreamId === undefined || isReported(admission, seenAt)
      ? undefined
      : handOut(call, { admission, upstreamId }, begun);
  if (handing) await handing;
  const nameJob = async (id: string) => {
    const upstreamId = job.upstreamId ?? id;
    if (!isUpstreamId(upstreamId)) throw namesNoJob;
    if (job.usesBucket) await call.images.links.leaveAlone({ ...jobKey(call), upstreamId, admission });
    return handlesOf(call.config).mint(jobKey(call), { upstreamId, admission });
  };
  let seen: SeenEnd | undefined;
  const { stream, done } = scanLarge(source, call.upstream, {
    replaceId: nameJob,
    conclude: async (facts) => {
      seen = await concludeSeen(call, facts, job, { askedAt, seenAt });
    },
  });
  const told = done.then(async ({ facts, fault, bytes }) => {
    const upstreamId = job.upstreamId ?? facts.id;
    if (upstreamId === undefined) return endNameless(call, admission, { facts, fault, bytes }, { askedAt, seenAt });
    if (job.upstreamId === undefined) bindNamed(call, admission, upstreamId);
    const { answer, ending } = (fault === undefined && seen) || {};
    if (isUpstreamId(upstreamId) && facts.status !== "COMPLETED") await handOut(call, { admission, upstreamId }, bytes);
    if (!answer || !ending) return;
    const notice = once(() => noticeOf(call, answer, ending));
    const kept = async () => (bytes <= keptBytes ? notice() : JSON.stringify(answer));
    const keep = async (run: string) =>
      keepUnder(call.env.IMAGES, resultNames([admission], run), { run, body: await kept() });
    await settle(call.meter, ending, notice, keep);
  });
  call.waitUntil(told.catch(logUnsettled));
  call.exchange.logAfter = done;
  return new Response(stream, { headers: { "Content-Type": "application/json" } });
}

/**
 * Counts the answer of a job that may still go on as handed-out text: by its length in bytes, since its text is not
 * read.
 */
function handOut(call: JobCall, job: JobRef, bytes: number): Promise<void> | undefined {
  return handedOut.whole(call, job, 1, bytes);
}

/** A job without an id cannot be asked about later. It costs what its answer says, or else what was handed out. */
async function endNameless(
  { meter, target }: JobCall,
  admission: string,
  { facts, fault, bytes }: { facts: AnswerFacts; fault: RelayFault | undefined; bytes: number },
  at: Pick<Ending, "askedAt" | "seenAt">,
): Promise<void> {
  const answer = fault === undefined ? jobOf(facts) : undefined;
  const ending = answer && endingOf(answer, target, { upstreamId: "", admission }, at);
  if (ending) return settle(meter, { ...ending, upstreamId: null }, () => JSON.stringify(answer));
  if (facts.status !== "IN_QUEUE") {
    await meter.handOut(admission, { upstreamId: null, pieces: 1, textBytes: bytes, whole: true });
  }
  meter.doubt(admission);
}

function bindNamed({ meter }: JobCall, admission: string, id: string): void {
  if (isUpstreamId(id)) meter.bindAtOnce({ admission, upstreamId: id });
  else meter.doubt(admission);
}

function isDetached(call: JobCall, job: JobRef, now: number): Promise<boolean> {
  return call.images.links.isDetached({ ...jobKey(call), ...job, known: call.target.model }, now);
}

/** The caller cancelled its share of this job: the answer is drained, and reported as CANCELLED. */
async function answerDetached(call: JobCall, source: ByteSource, job: JobRef, askedAt: number): Promise<Response> {
  const { job: answer } = await readFacts(source, call.upstream);
  if (!answer) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not a job.");
  const handle = handlesOf(call.config).mint(jobKey(call), job);
  return answerJob(call, answer, job, handle, { askedAt, partly: true });
}

/** Reads a large answer to its end for the few facts about its job, and drops the rest. */
export async function readFacts(source: ByteSource, teller: Teller): Promise<ReadFacts> {
  const { stream, done } = scanLarge(source, teller, { replaceId: () => undefined });
  await stream.pipeTo(new WritableStream()).catch(() => {});
  const { facts, fault } = await done;
  return fault === undefined ? { job: jobOf(facts) } : { fault };
}

export interface ReadFacts {
  /** Undefined if the answer is no job. */
  readonly job?: UpstreamJob | undefined;
  readonly fault?: RelayFault;
}

/** The upstream whose answer is read: its time limits, and the keys that must not pass. */
type Teller = Pick<Upstream, "times" | "keySearch">;

/** Streams the answer as it came, with its id replaced. If either side cuts it off, `done` resolves with the fault. */
export function scanLarge(
  source: ByteSource,
  { times, keySearch }: Teller,
  scan: Pick<AnswerScan, "replaceId" | "conclude">,
) {
  const giveUp = () => source.reader.cancel("too slow").catch(() => {});
  const timer = setTimeout(giveUp, times.streamMs);
  const passing = measureAsItPasses(source, false);
  const { stream, done } = scanAnswer({
    source: passing.source,
    limitBytes: answerLimitBytes,
    mediaKeys: mediaFields,
    ...scan,
    forbidden: { search: keySearch, found: logOwnKey },
  });
  const ended = done.then(({ facts, fault }) => {
    clearTimeout(timer);
    return { facts, fault, bytes: passing.bytes() };
  });
  return { stream, done: ended };
}

interface SeenEnd {
  readonly answer: UpstreamJob;
  readonly ending: Ending;
}

/** Runs before the answer's last byte leaves, so that the media is kept by then. Undefined while the job goes on. */
async function concludeSeen(
  call: JobCall,
  facts: AnswerFacts,
  { admission, upstreamId = facts.id }: Following,
  at: Pick<Ending, "askedAt" | "seenAt">,
): Promise<SeenEnd | undefined> {
  const answer = jobOf(facts);
  if (!answer || !isUpstreamId(upstreamId)) return undefined;
  const ending = endingOf(answer, call.target, { upstreamId, admission }, at);
  logJob(call.exchange, answer.status);
  if (ending && ending.costMicroUsd !== null) call.exchange.costMicroUsd = ending.costMicroUsd;
  const ended = { ...jobKey(call), known: call.target.model, upstreamId, admission, ending, partly: true };
  const { kept } = await call.images.links.present(answer, ended, undefined, at.seenAt);
  return ending && { answer, ending: { ...ending, media: kept } };
}

/**
 * The client's webhook carries the output, which has streamed by and is gone: the upstream is asked for it once more.
 */
async function noticeOf(call: JobCall, seen: UpstreamJob, ending: Ending): Promise<string> {
  const { admission, upstreamId } = ending;
  if (upstreamId === null) return JSON.stringify(seen);
  const { output: _, ...without } = seen;
  const whole = await call.upstream
    .status(upstreamId)
    .then(readJob)
    .catch(() => without);
  const ended = { ...jobKey(call), known: call.target.model, upstreamId, admission, ending };
  const { answer } = await call.images.links.present(whole, ended, originOf(call), ending.seenAt);
  return JSON.stringify({ ...answer, id: handlesOf(call.config).mint(jobKey(call), { upstreamId, admission }) });
}

/** The job as if its answer had been parsed. Its output holds only media URLs, `cost` and `size`. */
export function jobOf({
  id,
  status,
  delayTime,
  executionTime,
  cost,
  size,
  media,
}: AnswerFacts): UpstreamJob | undefined {
  if (status === undefined) return undefined;
  const output = { ...media, ...(cost !== undefined && { cost }), ...(size !== undefined && { size }) };
  return {
    ...(id !== undefined && { id }),
    status,
    ...(delayTime !== undefined && { delayTime }),
    ...(executionTime !== undefined && { executionTime }),
    ...(Object.keys(output).length > 0 && { output }),
  };
}
