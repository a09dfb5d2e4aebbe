// A job's answer that is too large to hold: streamed to its owner under the handle and the links, settled by what was seen of it.
import type { Context } from "hono";
import { isMediaField, mediaFields } from "../../contract/media-fields.ts";
import { Problem } from "../../errors.ts";
import { type AnswerFacts, type AnswerScan, scanAnswer } from "../../wire/answer-scan.ts";
import type { ByteSource } from "../../wire/body.ts";
import type { RelayFault } from "../../wire/json-relay.ts";
import type { StreamedLinks } from "../images/streamed-links.ts";
import type { Ending } from "../quota/metering.ts";
import { callUpstream, type Upstream } from "../upstream.ts";
import { answerLimitBytes, readJob, type UpstreamJob } from "../upstream-answer.ts";
import { logOwnKey } from "../upstream-body.ts";
import { answerJob, logUnsettled, originOf } from "./answer.ts";
import { type Handle, handlesOf, isRef } from "./handle.ts";
import { logJob } from "./logged-job.ts";
import { completionOf, endingOf, settle } from "./settling.ts";
import { type JobEnv, jobKey } from "./target.ts";

const encoder = new TextEncoder();

/** Of a submission the upstream's id is known once it passes by. */
type Following = { readonly admission: string; readonly ref?: string };

export async function answerLarge(c: Context<JobEnv>, source: ByteSource, job: Following): Promise<Response> {
  const { admission, ref } = job;
  const seenAt = Date.now();
  if (ref !== undefined && (await isDetached(c, { admission, ref }, seenAt)))
    return answerDetached(c, source, { admission, ref });
  const links = c.get("images").links.stream({ ...jobKey(c), admission }, originOf(c));
  const nameJob = async (id: string) => {
    const ref = job.ref ?? id;
    if (!isRef(ref)) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer names no job.");
    return handlesOf(c.get("config")).mint(jobKey(c), { ref, admission });
  };
  let seen: SeenEnd | undefined;
  const { stream, done } = scanLarge(source, c.get("upstream"), {
    replace: (place, value, facts) => {
      if (place === "id") return nameJob(value);
      const field = place.slice("output.".length);
      const passing = { url: value, ref: job.ref ?? facts.id, completedAt: boundOf(facts, admission, seenAt) };
      return isMediaField(field) && mayBeDone(facts) ? links.replace(field, passing, seenAt) : undefined;
    },
    extend: () => links.members(),
    conclude: async (facts) => {
      seen = await concludeSeen(c, facts, job, links, seenAt);
    },
  });
  const told = done.then(async ({ facts, fault }) => {
    const ref = job.ref ?? facts.id;
    if (job.ref === undefined && isRef(ref)) await c.get("meter")().bind(admission, ref);
    const { answer, ending } = (fault === undefined && seen) || {};
    if (answer && ending) await settle(c.get("meter"), ending, () => noticeOf(c, answer, ending));
  });
  c.executionCtx.waitUntil(told.catch(logUnsettled));
  c.get("exchange").logAfter = done;
  return c.body(stream, 200, { "Content-Type": "application/json" });
}

function isDetached(c: Context<JobEnv>, job: Handle, now: number): Promise<boolean> {
  return c.get("images").links.isDetached({ ...jobKey(c), ...job, known: c.get("target").model }, now);
}

/** Whose owner got off it: what it made is for the others, and is let go as it passes by. */
async function answerDetached(c: Context<JobEnv>, source: ByteSource, job: Handle): Promise<Response> {
  const { job: answer } = await readFacts(source, c.get("upstream"));
  if (!answer) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not a job.");
  return answerJob(c, answer, job, await handlesOf(c.get("config")).mint(jobKey(c), job), true);
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

/** Whose answer it is: how long it may take, and which key it may not say where it goes on to a caller. */
type Teller = Pick<Upstream, "times"> & Partial<Pick<Upstream, "key">>;

/** As it came but for what is replaced. What was cut off on the way, by either side, has its fault. */
export function scanLarge(
  source: ByteSource,
  { times, key }: Teller,
  scan: Pick<AnswerScan, "replace" | "extend" | "conclude">,
) {
  const giveUp = () => source.reader.cancel("too slow").catch(() => {});
  const timer = setTimeout(giveUp, times.streamMs);
  const { stream, done } = scanAnswer({
    ...{ source, limitBytes: answerLimitBytes, mediaKeys: mediaFields, ...scan },
    ...(key !== undefined && { forbidden: { bytes: encoder.encode(key), found: logOwnKey } }),
  });
  const ended = done.then(({ facts, fault }) => {
    clearTimeout(timer);
    return { facts, fault };
  });
  return { stream, done: ended };
}

interface SeenEnd {
  readonly answer: UpstreamJob;
  readonly ending: Ending;
}

/** Before the answer's last byte: whoever has all of it may fetch its links. Undefined while the job goes on. */
async function concludeSeen(
  c: Context<JobEnv>,
  facts: AnswerFacts,
  { admission, ref = facts.id }: Following,
  links: StreamedLinks,
  seenAt: number,
): Promise<SeenEnd | undefined> {
  const answer = jobOf(facts);
  if (!answer || !isRef(ref)) return undefined;
  const ending = endingOf(answer, c.get("target"), { ref, admission }, seenAt);
  logJob(c, answer.status);
  if (ending && ending.costMicroUsd !== null) c.get("exchange").costMicroUsd = ending.costMicroUsd;
  const ended = { ...jobKey(c), known: c.get("target").model, ref, admission, ending };
  const { kept } = await links.conclude(answer, ended, seenAt);
  return ending && { answer, ending: { ...ending, media: kept } };
}

/** The client's webhook gets the output too, which has passed by: it is asked for once more. */
async function noticeOf(c: Context<JobEnv>, seen: UpstreamJob, ending: Ending): Promise<string> {
  const upstream = c.get("upstream");
  const { admission, ref } = ending;
  if (ref === null) return JSON.stringify(seen);
  const again = callUpstream(upstream, {
    method: "GET",
    segments: [c.get("target").name, "status", ref],
    repeatable: true,
  });
  const { output: _, ...without } = seen;
  const whole = await again.then(readJob).catch(() => without);
  const ended = { ...jobKey(c), known: c.get("target").model, ref, admission, ending };
  const { answer } = await c.get("images").links.present(whole, ended, originOf(c), ending.seenAt);
  return JSON.stringify({ ...answer, id: await handlesOf(c.get("config")).mint(jobKey(c), { ref, admission }) });
}

/** As if it had been parsed, but for an output that holds nothing but its media and its numbers. */
function jobOf({ id, status, delayTime, executionTime, cost, size, media }: AnswerFacts): UpstreamJob | undefined {
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
