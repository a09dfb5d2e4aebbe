// What an answer says of a job's end, and who is told: the payer's meter, once an isolate has seen it.
import { isFinal, isJobState } from "../../contract/states.ts";
import { BoundedMemory } from "../../wire/bounded-memory.ts";
import { admittedAt } from "../admission.ts";
import type { Ending } from "../quota/metering.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import type { Handle } from "./handle.ts";
import type { PayersMeter } from "./payers-meter.ts";
import type { Target } from "./target.ts";

/** Undefined while the job goes on. */
export function endingOf(
  answer: UpstreamJob,
  target: Target,
  { ref, admission }: Handle,
  { askedAt, seenAt }: Pick<Ending, "askedAt" | "seenAt">,
): Ending | undefined {
  if (!isJobState(answer.status) || !isFinal(answer.status)) return undefined;
  return {
    admission,
    upstreamId: ref,
    status: answer.status,
    costMicroUsd: costOf(answer.output, target) ?? null,
    askedAt,
    seenAt,
    completedAt: completionOf(answer, admission, seenAt),
  };
}

/** When the model was done, as far as the answer says it. */
export function completionOf(
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
export function costOf(output: unknown, { model }: Target): number | undefined {
  if (model) return model.costOf(output, {});
  const cost = typeof output === "object" && output !== null && "cost" in output ? output.cost : undefined;
  const micro = typeof cost === "number" ? Math.round(cost * 1e6) : Number.NaN;
  return Number.isSafeInteger(micro) && micro >= 0 ? micro : undefined;
}

const rememberedCharacters = 1024 * 1024;
const rememberMs = 60 * 60 * 1000;
/** By admission, how it ended and at what cost: told again, it is no news. A cost that becomes known later is. */
const told = new BoundedMemory<string>(rememberedCharacters);

/** Tells the meter of an end. Undefined where this isolate has done so: a client that polls on costs no more calls. */
export function settle(
  meter: Pick<PayersMeter, "settle" | "notify">,
  ending: Ending,
  body: () => string | Promise<string>,
): Promise<void> | undefined {
  const news = newsOf(ending);
  return told.get(ending.admission, ending.seenAt) === news ? undefined : tell(meter, ending, news, body);
}

async function tell(
  meter: Pick<PayersMeter, "settle" | "notify">,
  ending: Ending,
  news: string,
  body: () => string | Promise<string>,
): Promise<void> {
  const settled = await meter.settle(ending);
  if (settled.wantsNotice) await meter.notify(settled.admission, await body());
  // What was asked before a retry was accepted does not end it: the next look is to be told. So is its owner's, after a notice.
  if (settled.isOver && !ending.isUntold) told.set(ending.admission, news, ending.seenAt + rememberMs);
}

function newsOf({ status, costMicroUsd }: Ending): string {
  return `${status} ${costMicroUsd}`;
}

export function isTold(admission: string, now: number): boolean {
  return told.get(admission, now) !== undefined;
}

const retriedAt = new BoundedMemory<number>(rememberedCharacters);
const retriedMs = 24 * 60 * 60 * 1000;

/** The job begins anew, under the handle of its first admission. */
export function beginAgain(admission: string, now: number): void {
  told.forget(admission);
  retriedAt.set(admission, now, now + retriedMs);
}
