// A submission on its way upstream: sent with the server's key, a large one amended before its last byte, its answer opened.
import { Problem } from "../../errors.ts";
import type { ByteSource } from "../../wire/byte-reader.ts";
import { claimsOf } from "../claims.ts";
import { openJob, type UpstreamJob } from "../upstream-answer.ts";
import { keyOf, type Submission } from "./admit-request.ts";
import type { Passed } from "./envelope.ts";
import { isRef } from "./handle.ts";
import type { JobCall } from "./job-call.ts";
import type { Attempt } from "./metered.ts";

export interface TakenJob {
  readonly job: UpstreamJob;
  readonly ref: string;
  readonly askedAt: number;
}

/** Of an answer that is too large to hold the id is known once it passes by. */
export type Taken = TakenJob | { readonly large: ByteSource; readonly askedAt: number };

export async function relay(
  call: JobCall,
  { operation, waitMs, admission, envelope, notice }: Submission,
  attempt: Attempt,
): Promise<Taken> {
  const { body, upload } = envelope.relayed(notice, {
    digested: keyOf(call) !== undefined,
    accept: (passed) => amend(call, admission, passed),
  });
  const segments = [call.target.name, operation];
  const query = operation === "runsync" ? { query: `wait=${waitMs}` } : {};
  const sending = { method: "POST", segments, ...query, repeatable: false, waitMs, body } as const;
  const answered = await attempt.ask(call.upstream, sending, upload);
  const opened = await openJob(answered).catch((error: unknown) => {
    throw error instanceof Problem && error.code === "JOB_NOT_FOUND" ? unknownModel : error;
  });
  const { askedAt } = answered;
  if ("large" in opened) return { large: opened.large, askedAt };
  const { id } = opened.whole;
  if (!isRef(id)) throw namesNoJob;
  return { job: opened.whole, ref: id, askedAt };
}

export const namesNoJob = new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer names no job.");
const unknownModel = new Problem("UPSTREAM_INVALID", "The model service does not know this model.");

/** Before its last byte is sent a large body is admitted at what it says: there is no job yet, so no refusal comes too late. */
async function amend(call: JobCall, admission: string, passed: Passed): Promise<void> {
  await call.meter.amend(admission, { terms: claimsOf(call), ...passed });
}
