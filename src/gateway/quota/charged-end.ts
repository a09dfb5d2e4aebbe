// The end that is written into a job's row: its status, and what the job is charged.
import { assumedCharge, type Charge, chargeOf, isFarOff } from "./charge.ts";
import { isSure, type Taken, wasOfEarlierRun } from "./ending-rules.ts";
import type { Job } from "./job.ts";
import type { End } from "./jobs.ts";
import type { Ending } from "./metering.ts";

const nothingMore: Charge = { microUsd: 0, assumed: true };

/** How an open job ends by an answer, or by a notice. */
export function firstEnd(job: Job, ending: Ending): End {
  return endBy(job, ending, chargeBy(job, ending));
}

/** What an answer makes of an end that is known already. Undefined where what the job was charged stays. */
export function correctedEnd(job: Job, ending: Taken): End | undefined {
  if (isSure(job, ending)) return undefined;
  const charge = chargeBy(job, ending);
  /** What it was charged was an earlier run's: this is its own first end. */
  if (wasOfEarlierRun(job, ending)) return endBy(job, ending, charge);
  /** Only a known cost corrects an assumed charge. An end that only a notice named may raise it, never lower it. */
  const isRaised = ending.isUnproven === true && charge.microUsd > job.charged;
  /** Its time was over before its text was counted. */
  const isCounted = job.status === "TIMED_OUT" && ending.assumedMicroUsd !== undefined && !ending.isUnproven;
  return charge.assumed && !isRaised && !isCounted ? undefined : endBy(job, ending, charge);
}

/** The end of a job whose end will never be known. */
export function assumedEnd(job: Job, isPaidElsewhere: boolean, isGone: boolean, now: number): End {
  log(job, "no answer: its end is assumed");
  const charge = isPaidElsewhere ? nothingMore : assumedCharge(job, isGone);
  return endOf(charge, "TIMED_OUT", Math.max(now, job.admittedAt));
}

function chargeBy(job: Job, { status, costMicroUsd, assumedMicroUsd, isUnproven }: Ending): Charge {
  const said = chargeOf(job, status, costMicroUsd, assumedMicroUsd);
  return isUnproven ? { ...said, assumed: true } : said;
}

function endBy(job: Job, { status, isUnproven, completedAt }: Ending, charge: Charge): End {
  if (charge.assumed && status === "COMPLETED") log(job, isUnproven ? onlyNoticed : noCost);
  if (isFarOff(charge, job.reserved)) log(job, `costs ${charge.microUsd}, ${job.reserved} were reserved`);
  return endOf(charge, status, Math.max(completedAt, job.admittedAt));
}

function endOf({ microUsd, assumed }: Charge, status: End["status"], endedAt: number): End {
  return { status, charged: microUsd, assumed: assumed ? 1 : 0, endedAt };
}

const noCost = "no cost in the answer: it is assumed";
/** A notice is not believed: the job that it names may be another one. */
const onlyNoticed = "only a notice named this job: what it cost is marked as assumed";

function log({ admission, model }: Job, problem: string): void {
  console.warn(JSON.stringify({ meter: admission, model, problem }));
}
