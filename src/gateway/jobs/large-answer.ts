// A job's answer that is too large to hold: streamed to its owner under the handle, settled by what was seen of it.
import type { Context } from "hono";
import { Problem } from "../../errors.ts";
import { type AnswerFacts, scanAnswer } from "../../wire/answer-scan.ts";
import type { ByteSource } from "../../wire/body.ts";
import { callUpstream, type Times } from "../upstream.ts";
import { answerLimitBytes, readJob, type UpstreamJob } from "../upstream-answer.ts";
import { logUnsettled } from "./answer.ts";
import { type Handle, handlesOf, isRef } from "./handle.ts";
import { endingOf, settle } from "./settling.ts";
import { type JobEnv, jobKey } from "./target.ts";

/** Of a submission the upstream's id is known once it passes by. */
type Following = { readonly admission: string; readonly ref?: string };

export async function answerLarge(c: Context<JobEnv>, source: ByteSource, job: Following): Promise<Response> {
  const handles = handlesOf(c.get("config"));
  const { admission } = job;
  const { stream, done } = scanLarge(source, c.get("upstream").times, async (id) => {
    const ref = job.ref ?? id;
    if (!isRef(ref)) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer names no job.");
    return handles.mint(jobKey(c), { ref, admission });
  });
  const seen = done.then(async ({ facts, whole }) => {
    const ref = job.ref ?? facts.id;
    if (!isRef(ref)) return;
    if (job.ref === undefined) await c.get("meter")().bind(admission, ref);
    if (whole) await settleSeen(c, facts, { ref, admission });
  });
  c.executionCtx.waitUntil(seen.catch(logUnsettled));
  return c.body(stream, 200, { "Content-Type": "application/json" });
}

/** What a large answer says of its job, where nobody waits for the rest of it. Undefined for one that is none. */
export async function readFacts(source: ByteSource, times: Times): Promise<UpstreamJob | undefined> {
  const { stream, done } = scanLarge(source, times, () => undefined);
  await stream.pipeTo(new WritableStream()).catch(() => {});
  const { facts, whole } = await done;
  return whole ? jobOf(facts) : undefined;
}

type NameJob = (id: string) => string | undefined | Promise<string | undefined>;

/** As it came but for the id. What was cut off on the way, by either side, is not `whole`. */
export function scanLarge(source: ByteSource, times: Times, nameJob: NameJob) {
  const giveUp = () => source.reader.cancel("too slow").catch(() => {});
  const timer = setTimeout(giveUp, times.streamMs);
  const { stream, done } = scanAnswer({
    source,
    limitBytes: answerLimitBytes,
    mediaKeys: [],
    replace: (place, value) => (place === "id" ? nameJob(value) : undefined),
  });
  const ended = done.then(({ facts, fault }) => {
    clearTimeout(timer);
    return { facts, whole: fault === undefined };
  });
  return { stream, done: ended };
}

async function settleSeen(c: Context<JobEnv>, facts: AnswerFacts, job: Handle): Promise<void> {
  const answer = jobOf(facts);
  const ending = answer && endingOf(answer, c.get("target"), job, Date.now());
  if (ending) await settle(c.get("meter")(), ending, () => noticeOf(c, answer, job));
}

/** The client's webhook gets the output too, which has passed by: it is asked for once more. */
async function noticeOf(c: Context<JobEnv>, answer: UpstreamJob, job: Handle): Promise<string> {
  const upstream = c.get("upstream");
  const segments = [c.get("target").name, "status", job.ref];
  const again = callUpstream(upstream, { method: "GET", segments, repeatable: true });
  const { output: _, ...without } = answer;
  const whole = await again.then((response) => readJob(response, upstream)).catch(() => without);
  return JSON.stringify({ ...whole, id: await handlesOf(c.get("config")).mint(jobKey(c), job) });
}

/** As if it had been parsed, but for an output that holds nothing but its cost. */
function jobOf({ status, delayTime, executionTime, cost }: AnswerFacts): UpstreamJob | undefined {
  if (status === undefined) return undefined;
  return {
    status,
    ...(delayTime !== undefined && { delayTime }),
    ...(executionTime !== undefined && { executionTime }),
    ...(cost !== undefined && { output: { cost } }),
  };
}
