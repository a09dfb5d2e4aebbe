// What a meter's alarm asks the upstream about a job that no client follows, and what it is answered.
import type { JobState } from "../../contract/states.ts";
import type { Ending } from "./metering.ts";

/** Asks the upstream for a job's status. Set in upstream-choice.ts, so that the quota does not import the upstream client. */
export type AskUpstream = (job: AskedJob, large?: LargeAnswers) => Promise<UpstreamAnswer>;

/** What is done with an answer that is too large to hold. */
export interface LargeAnswers {
  /** Awaited before more of it is read: large answers are read one after the other. */
  turn(): Promise<void>;
  /**
   * Keeps the text that the owner would get, and always reads it to its end. False if it breaks off or is too large.
   * Undefined if the answer may not be kept.
   */
  readonly keep: ((text: ReadableStream<Uint8Array>) => Promise<boolean>) | undefined;
}

export interface AskedJob {
  readonly model: string;
  readonly upstreamId: string;
  readonly owner: string;
  readonly admission: string;
  /** The first admission of its chain: the owner's id of the job names it. */
  readonly first: string;
  /** Only a notice named it. Whose job it is, and where its media is to lie, only the relay says. */
  readonly isUnproven: boolean;
}

/** The body of a client's webhook if only the job's status is known. */
export type DescribeEnd = (job: AskedJob, status: JobState) => string;

export type UpstreamAnswer =
  | {
      readonly status: JobState;
      readonly costMicroUsd: number | null;
      readonly completedAt: number;
      readonly media?: Ending["media"];
      /** The final answer as its owner gets it. */
      readonly body?: string;
      /** It was too large to hold, and `LargeAnswers.keep` took it. */
      readonly isTaken?: boolean;
    }
  /** The upstream does not know the job (any more). */
  | "unknown"
  | "unreachable";
