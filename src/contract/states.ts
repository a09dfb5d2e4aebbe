// The states of a job, as the contract spells them.

export const jobStates = ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"] as const;
export type JobState = (typeof jobStates)[number];

const finals: ReadonlySet<string> = new Set(["COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"] satisfies JobState[]);

const all: ReadonlySet<string> = new Set(jobStates);

export function isJobState(status: string): status is JobState {
  return all.has(status);
}

export function isFinal(status: string): boolean {
  return finals.has(status);
}
