// What an answer says of a job's end, and who is told: the payer's meter, once an isolate has seen it.
import { isFinal, isJobState } from "../../contract/states.ts";
import { BoundedMemory } from "../../wire/bounded-memory.ts";
import type { Remote } from "../../wire/remote.ts";
import { admittedAt } from "../admission.ts";
import type { Ending, Metering } from "../quota/metering.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import type { Handle } from "./handle.ts";
import type { Target } from "./target.ts";

/** Undefined while the job goes on. */
export function endingOf(
  answer: UpstreamJob,
  target: Target,
  { ref, admission }: Handle,
  seenAt: number,
): Ending | undefined {
  if (!isJobState(answer.status) || !isFinal(answer.status)) return undefined;
  return {
    ...{ admission, ref, status: answer.status, seenAt },
    costMicroUsd: costOf(answer.output, target) ?? null,
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
  return ranMs > 0 ? Math.min(seenAt, admittedAt(admission) + Math.round(ranMs)) : seenAt;
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
const told = new BoundedMemory<true>(rememberedCharacters);

/** Tells the meter of an end. Undefined where this isolate has done so: a client that polls on costs no more calls. */
export function settle(
  meter: () => Remote<Metering>,
  ending: Ending,
  body: () => string | Promise<string>,
): Promise<void> | undefined {
  return isTold(ending.admission, ending.seenAt) ? undefined : tell(meter(), ending, body);
}

async function tell(meter: Remote<Metering>, ending: Ending, body: () => string | Promise<string>): Promise<void> {
  const settled = await meter.settle(ending);
  told.set(ending.admission, true, ending.seenAt + rememberMs);
  if (settled.wantsNotice) await meter.notify(ending.admission, await body());
}

export function isTold(admission: string, now: number): boolean {
  return told.get(admission, now) === true;
}

/** A retry makes the same job end once more. */
export function forgetEnding(admission: string): void {
  told.forget(admission);
}
