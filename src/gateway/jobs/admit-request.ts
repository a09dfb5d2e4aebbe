// What the payer's meter is asked before anything goes upstream.
import { limits } from "../../contract/limits.ts";
import { claimsOf } from "../claims.ts";
import type { AdmitRequest } from "../quota/metering.ts";
import type { Envelope } from "./envelope.ts";
import { readIdempotency } from "./idempotency-key.ts";
import type { JobCall } from "./job-call.ts";

export interface Submission {
  readonly operation: "run" | "runsync";
  readonly waitMs: number;
  readonly admission: string;
  readonly envelope: Envelope;
  /** Where the upstream is to tell of the job's end; undefined where it could not. */
  readonly notice: string | undefined;
}

export async function admitRequest(
  call: JobCall,
  { operation, waitMs, admission, envelope, notice }: Submission,
): Promise<AdmitRequest> {
  return {
    ...payerTerms(call),
    admission,
    operation,
    reserveMicroUsd: envelope.reserveMicroUsd,
    inputBytes: envelope.statedBytes,
    hasNotice: notice !== undefined,
    ttlMs: envelope.ttlMs,
    retentionMs: operation === "run" ? limits.runRetentionMs : Math.max(waitMs, limits.runsyncRetentionMs.min),
    webhook: envelope.webhook,
    idempotency: await readIdempotency(call.request.headers, [operation, call.target.name], envelope),
  };
}

/** Whether the caller may come back for what becomes of the call. */
export function isKeyed({ request }: JobCall): boolean {
  return request.headers.has("Idempotency-Key");
}

/** Who pays for what, under which plan, narrowed by which token. */
export function payerTerms(call: JobCall) {
  const { owner, issuedAt, tokenId } = call.principal;
  const { name, model } = call.target;
  return { owner, bearer: { issuedAt, tokenId }, model: name, kind: model?.kind, ...claimsOf(call) };
}
