// A submission on its way upstream: sent with the server's key, a large one amended before its last byte, its answer opened.
import { Problem } from "../../errors.ts";
import type { ByteSource } from "../../json/byte-reader.ts";
import { claimsOf } from "../quota/claims.ts";
import { openJob, type UpstreamJob } from "../upstream/upstream-answer.ts";
import { keyOf, type Submission } from "./admit-request.ts";
import type { CheckedBody } from "./envelope.ts";
import { isUpstreamId } from "./handle.ts";
import type { JobCall } from "./job-call.ts";
import type { Attempt } from "./metered.ts";
import { withSentLinks } from "./sent-links.ts";

export interface TakenJob {
  readonly job: UpstreamJob;
  readonly upstreamId: string;
  readonly askedAt: number;
}

/** If the answer is too large to hold, the job's id is known only after it has streamed by. */
export type Taken = TakenJob | { readonly large: ByteSource; readonly askedAt: number };

export async function relay(
  call: JobCall,
  { operation, waitMs, admission, envelope, notice }: Submission,
  attempt: Attempt,
): Promise<Taken> {
  const relayed = envelope.relayed(notice, {
    digested: keyOf(call) !== undefined,
    accept: (checked) => amend(call, admission, checked),
  });
  const { body, upload } = await withSentLinks(call, operation, envelope, relayed);
  const sending = upload ? { body, sent: upload.sent } : { body };
  const submit = () => (operation === "runsync" ? call.upstream.runsync(waitMs, sending) : call.upstream.run(sending));
  const answered = await attempt.ask(submit, upload);
  const opened = await openJob(answered).catch((error: unknown) => {
    throw error instanceof Problem && error.code === "JOB_NOT_FOUND" ? unknownModel : error;
  });
  const { askedAt } = answered;
  if ("large" in opened) return { large: opened.large, askedAt };
  const { id } = opened.whole;
  if (!isUpstreamId(id)) throw namesNoJob;
  return { job: opened.whole, upstreamId: id, askedAt };
}

export const namesNoJob = new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer names no job.");
const unknownModel = new Problem("UPSTREAM_INVALID", "The model service does not know this model.");

/**
 * Tells the meter the real price of a large body before its last byte is sent. A refusal is in time: the upstream has
 * no job yet.
 */
async function amend(call: JobCall, admission: string, checked: CheckedBody): Promise<void> {
  await call.meter.amend(admission, { terms: claimsOf(call), ...checked });
}
