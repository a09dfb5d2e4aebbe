// Reads a job's end out of an answer, and tells the payer's meter of it, once per isolate.
import { isFinal, isJobState } from "../../contract/states.ts";
import { BoundedMemory } from "../../isolate/bounded-memory.ts";
import { microUsd } from "../../micro-usd.ts";
import type { Ending } from "../quota/metering.ts";
import type { UpstreamJob } from "../upstream/upstream-answer.ts";
import { admittedAt } from "./admission-id.ts";
import type { CalledModel } from "./called-model.ts";
import type { JobRef } from "./handle.ts";
import type { PayersMeter } from "./payers-meter.ts";

/** Undefined while the job goes on. */
export function endingOf(
  answer: UpstreamJob,
  target: CalledModel,
  { upstreamId, admission }: JobRef,
  { askedAt, seenAt }: Pick<Ending, "askedAt" | "seenAt">,
): Ending | undefined {
  if (!isJobState(answer.status) || !isFinal(answer.status)) return undefined;
  return {
    admission,
    upstreamId,
    status: answer.status,
    costMicroUsd: costOf(answer.output, target) ?? null,
    askedAt,
    seenAt,
    completedAt: completionOf(answer, admission, seenAt),
  };
}

/** When the model was done, as far as the answer says it. */
function completionOf(
  { delayTime, executionTime }: Pick<UpstreamJob, "delayTime" | "executionTime">,
  admission: string,
  seenAt: number,
): number {
  const ranMs = duration(delayTime) + duration(executionTime);
  const beganAt = retriedAt.get(admission, seenAt) ?? admittedAt(admission);
  return ranMs > 0 ? Math.min(seenAt, beganAt + Math.round(ranMs)) : seenAt;
}

function duration(ms: number | undefined): number {
  return ms !== undefined && Number.isFinite(ms) && ms > 0 ? ms : 0;
}

/** In micro-USD. The catalog reads its own models' answers; of others only a plain `cost` is understood. */
export function costOf(output: unknown, { model }: CalledModel): number | undefined {
  if (model) return model.costOf(output, {});
  const cost = typeof output === "object" && output !== null && "cost" in output ? output.cost : undefined;
  const micro = typeof cost === "number" ? microUsd(cost) : Number.NaN;
  return Number.isSafeInteger(micro) && micro >= 0 ? micro : undefined;
}

/** When the upstream was asked for an end that it has forgotten, and that was kept: before anything that happened since. */
export const forgotten = 0;

const rememberedCharacters = 1024 * 1024;
const rememberMs = 60 * 60 * 1000;
/**
 * How each admission ended and at what cost, as this isolate told the meter. A cost that becomes known later is told
 * again.
 */
const reportedEnds = new BoundedMemory<string>(rememberedCharacters);

/**
 * Tells the meter of an end. Undefined if this isolate has told it before: a client that keeps polling costs no more
 * calls.
 */
export function settle(
  meter: Pick<PayersMeter, "settle" | "notify">,
  ending: Ending,
  body: () => string | Promise<string>,
  keep?: Keep,
): Promise<void> | undefined {
  const news = newsOf(ending);
  return reportedEnds.get(ending.admission, ending.seenAt) === news
    ? undefined
    : report(meter, ending, news, body, keep);
}

/** Keeps the result for its owner, even if the meter knew of the end before. `run` is the admission that ended. */
type Keep = (run: string) => Promise<unknown>;

async function report(
  meter: Pick<PayersMeter, "settle" | "notify">,
  ending: Ending,
  news: string,
  body: () => string | Promise<string>,
  keep: Keep | undefined,
): Promise<void> {
  const { admission, askedAt, seenAt, isUntold } = ending;
  const begunAt = retriedAt.get(admission, seenAt);
  const settled = await meter.settle(ending);
  if (keep && settled.isOver) await keep(settled.admission);
  if (settled.wantsNotice) await meter.notify(settled.admission, await body());
  // An end that the meter did not take (`isOver` is false: it is of a run before a retry) is told again at the next look,
  // unless the upstream has forgotten the job: then nothing newer comes. One that came with a notice is told again when its
  // owner sees it, and any end if the job was retried meanwhile.
  const isTold = settled.isOver || askedAt === forgotten;
  if (isTold && !isUntold && retriedAt.get(admission, seenAt) === begunAt)
    reportedEnds.set(admission, news, seenAt + rememberMs);
}

function newsOf({ status, costMicroUsd }: Ending): string {
  return `${status} ${costMicroUsd}`;
}

export function isReported(admission: string, now: number): boolean {
  return reportedEnds.get(admission, now) !== undefined;
}

const retriedAt = new BoundedMemory<number>(rememberedCharacters);
const retriedMs = 24 * 60 * 60 * 1000;

/** The job begins anew, under the handle of its first admission. */
export function beginAgain(admission: string, now: number): void {
  reportedEnds.forget(admission);
  retriedAt.set(admission, now, now + retriedMs);
}
