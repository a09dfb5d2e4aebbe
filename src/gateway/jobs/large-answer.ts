// A job's answer that is too large to hold: streamed to its owner under the handle and the links, settled by what was seen of it.
import { isMediaField, mediaFields } from "../../contract/media-fields.ts";
import { Problem } from "../../errors.ts";
import { type AnswerFacts, type AnswerScan, scanAnswer } from "../../wire/answer-scan.ts";
import type { ByteSource } from "../../wire/byte-reader.ts";
import type { RelayFault } from "../../wire/json-relay.ts";
import type { StreamedLinks } from "../images/streamed-links.ts";
import { logOwnKey } from "../own-keys.ts";
import type { Ending } from "../quota/metering.ts";
import { callUpstream, type Upstream } from "../upstream.ts";
import { answerLimitBytes, readJob, type UpstreamJob } from "../upstream-answer.ts";
import { answerJob, originOf } from "./answer.ts";
import { handedOut } from "./handed-out.ts";
import { type Handle, handlesOf, isRef } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";
import { logJob } from "./logged-job.ts";
import { measureAsItPasses } from "./passing-body.ts";
import { logUnsettled } from "./payers-meter.ts";
import { namesNoJob } from "./relay.ts";
import { completionOf, endingOf, isTold, settle } from "./settling.ts";

/** Of a submission the upstream's id is known once it passes by. */
type Following = { readonly admission: string; readonly ref?: string };

export async function answerLarge(
  call: JobCall,
  source: ByteSource,
  job: Following,
  askedAt: number,
): Promise<Response> {
  const { admission, ref } = job;
  const seenAt = Date.now();
  if (ref !== undefined && (await isDetached(call, { admission, ref }, seenAt)))
    return answerDetached(call, source, { admission, ref }, askedAt);
  const begun = source.head.byteLength;
  const handing = ref === undefined || isTold(admission, seenAt) ? undefined : handOut(call, { admission, ref }, begun);
  if (handing) await handing;
  const links = call.images.links.stream({ ...jobKey(call), admission }, originOf(call));
  const nameJob = async (id: string) => {
    const ref = job.ref ?? id;
    if (!isRef(ref)) throw namesNoJob;
    return handlesOf(call.config).mint(jobKey(call), { ref, admission });
  };
  let seen: SeenEnd | undefined;
  const { stream, done } = scanLarge(source, call.upstream, {
    ...replacing(links, job, nameJob, seenAt),
    conclude: async (facts) => {
      seen = await concludeSeen(call, facts, job, links, { askedAt, seenAt });
    },
  });
  const told = done.then(async ({ facts, fault, bytes }) => {
    const ref = job.ref ?? facts.id;
    if (ref === undefined) return endNameless(call, admission, { facts, fault, bytes }, { askedAt, seenAt });
    if (job.ref === undefined) tellTaken(call, admission, ref);
    const { answer, ending } = (fault === undefined && seen) || {};
    if (isRef(ref) && facts.status !== "COMPLETED") await handOut(call, { admission, ref }, bytes);
    if (answer && ending) await settle(call.meter, ending, () => noticeOf(call, answer, ending));
  });
  call.waitUntil(told.catch(logUnsettled));
  call.exchange.logAfter = done;
  return new Response(stream, { headers: { "Content-Type": "application/json" } });
}

/** What is not known to be a job's end is handed out: by its length, since its text passes unread. */
function handOut(call: JobCall, job: Handle, bytes: number): Promise<void> | undefined {
  return handedOut.whole(call, job, 1, bytes);
}

/** Nobody can be asked about a job without an id: it costs what its answer says, else what of it was handed out. */
async function endNameless(
  { meter, target }: JobCall,
  admission: string,
  { facts, fault, bytes }: { facts: AnswerFacts; fault: RelayFault | undefined; bytes: number },
  at: Pick<Ending, "askedAt" | "seenAt">,
): Promise<void> {
  const answer = fault === undefined ? jobOf(facts) : undefined;
  const ending = answer && endingOf(answer, target, { ref: "", admission }, at);
  if (ending) return settle(meter, { ...ending, upstreamId: null }, () => JSON.stringify(answer));
  if (facts.status !== "IN_QUEUE") {
    await meter.handOut(admission, { upstreamId: null, pieces: 1, textBytes: bytes, whole: true });
  }
  meter.doubt(admission);
}

function tellTaken({ meter }: JobCall, admission: string, id: string): void {
  if (isRef(id)) meter.bindAtOnce({ admission, upstreamId: id });
  else meter.doubt(admission);
}

function isDetached(call: JobCall, job: Handle, now: number): Promise<boolean> {
  return call.images.links.isDetached({ ...jobKey(call), ...job, known: call.target.model }, now);
}

/** Whose owner got off it: what it made is for the others, and is let go as it passes by. */
async function answerDetached(call: JobCall, source: ByteSource, job: Handle, askedAt: number): Promise<Response> {
  const { job: answer } = await readFacts(source, call.upstream);
  if (!answer) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not a job.");
  const handle = handlesOf(call.config).mint(jobKey(call), job);
  return answerJob(call, answer, job, handle, { askedAt, partly: true });
}

/** Of an answer that passes by the id and the media URLs. */
export function replacing(
  links: StreamedLinks,
  job: Following,
  nameJob: (id: string) => string | Promise<string>,
  seenAt: number,
): Pick<AnswerScan, "replace" | "extend"> {
  return {
    replace: (place, value, facts) => {
      if (place === "id") return nameJob(value);
      const field = place.slice("output.".length);
      const passing = { url: value, ref: job.ref ?? facts.id, completedAt: boundOf(facts, job.admission, seenAt) };
      return isMediaField(field) && mayBeDone(facts) ? links.replace(field, passing, seenAt) : undefined;
    },
    extend: () => links.members(),
  };
}

/** Only a completed job's URL is a link; where its status comes later, the URL speaks for it. */
function mayBeDone({ status }: AnswerFacts): boolean {
  return status === undefined || status === "COMPLETED";
}

/** The job's end, or a moment after it: half of the time that it took would be one before. */
function boundOf({ delayTime, executionTime }: AnswerFacts, admission: string, seenAt: number): number {
  if (delayTime === undefined || executionTime === undefined) return seenAt;
  return completionOf({ delayTime, executionTime }, admission, seenAt);
}

/** What a large answer says of its job, where nobody waits for the rest of it. */
export async function readFacts(source: ByteSource, teller: Teller): Promise<ReadFacts> {
  const { stream, done } = scanLarge(source, teller, { replace: () => undefined });
  await stream.pipeTo(new WritableStream()).catch(() => {});
  const { facts, fault } = await done;
  return fault === undefined ? { job: jobOf(facts) } : { fault };
}

export interface ReadFacts {
  /** Undefined where it is none. */
  readonly job?: UpstreamJob | undefined;
  readonly fault?: RelayFault;
}

/** Whose answer it is: how long it may take, and which keys it may not say. */
type Teller = Pick<Upstream, "times" | "keySearch">;

/** As it came but for what is replaced. What was cut off on the way, by either side, has its fault. */
export function scanLarge(
  source: ByteSource,
  { times, keySearch }: Teller,
  scan: Pick<AnswerScan, "replace" | "extend" | "conclude">,
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

/** Before the answer's last byte: whoever has all of it may fetch its links. Undefined while the job goes on. */
async function concludeSeen(
  call: JobCall,
  facts: AnswerFacts,
  { admission, ref = facts.id }: Following,
  links: StreamedLinks,
  at: Pick<Ending, "askedAt" | "seenAt">,
): Promise<SeenEnd | undefined> {
  const answer = jobOf(facts);
  if (!answer || !isRef(ref)) return undefined;
  const ending = endingOf(answer, call.target, { ref, admission }, at);
  logJob(call.exchange, answer.status);
  if (ending && ending.costMicroUsd !== null) call.exchange.costMicroUsd = ending.costMicroUsd;
  const ended = { ...jobKey(call), known: call.target.model, ref, admission, ending };
  const { kept } = await links.conclude(answer, ended, at.seenAt);
  return ending && { answer, ending: { ...ending, media: kept } };
}

/** The client's webhook gets the output too, which has passed by: it is asked for once more. */
async function noticeOf(call: JobCall, seen: UpstreamJob, ending: Ending): Promise<string> {
  const upstream = call.upstream;
  const { admission, upstreamId: ref } = ending;
  if (ref === null) return JSON.stringify(seen);
  const again = callUpstream(upstream, {
    method: "GET",
    segments: [call.target.name, "status", ref],
    repeatable: true,
  });
  const { output: _, ...without } = seen;
  const whole = await again.then(readJob).catch(() => without);
  const ended = { ...jobKey(call), known: call.target.model, ref, admission, ending };
  const { answer } = await call.images.links.present(whole, ended, originOf(call), ending.seenAt);
  return JSON.stringify({ ...answer, id: handlesOf(call.config).mint(jobKey(call), { ref, admission }) });
}

/** As if it had been parsed, but for an output that holds nothing but its media and its numbers. */
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
