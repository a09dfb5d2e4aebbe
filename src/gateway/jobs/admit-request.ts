// What the payer's meter is asked before anything goes upstream.
import { limits } from "../../contract/limits.ts";
import { Problem } from "../../errors.ts";
import { claimsOf } from "../quota/claims.ts";
import type { AdmitRequest } from "../quota/metering.ts";
import type { Envelope } from "./envelope.ts";
import type { JobCall } from "./job-call.ts";

export interface Submission {
  readonly operation: "run" | "runsync";
  readonly waitMs: number;
  readonly admission: string;
  readonly envelope: Envelope;
  /** Where the upstream is to tell of the job's end; undefined where it could not. */
  readonly notice: string | undefined;
}

const idempotencyKey = /^[\x21-\x7e]{1,255}$/;

/** A promise only where the caller sent an idempotency key. */
export function admitRequest(
  call: JobCall,
  { operation, waitMs, admission, envelope, notice }: Submission,
): AdmitRequest | Promise<AdmitRequest> {
  const request: AdmitRequest = {
    ...payerTerms(call),
    admission,
    operation,
    reserveMicroUsd: envelope.reserveMicroUsd,
    inputBytes: envelope.statedBytes,
    hasNotice: notice !== undefined,
    ttlMs: envelope.ttlMs,
    retentionMs: operation === "run" ? limits.runRetentionMs : Math.max(waitMs, limits.runsyncRetentionMs.min),
    webhook: envelope.webhook,
    webhookInput: envelope.webhookInput,
    idempotency: undefined,
  };
  const keyed = idempotencyOf(call, operation, envelope);
  return keyed ? keyed.then((idempotency) => ({ ...request, idempotency })) : request;
}

/** Undefined where the caller names none. */
export function keyOf(call: JobCall): string | undefined {
  const key = call.idempotencyKey ?? undefined;
  if (key === undefined || idempotencyKey.test(key)) return key;
  throw new Problem("INVALID_REQUEST", "Idempotency-Key: expected 1 to 255 visible ASCII characters");
}

/** Who pays for what, under which plan, narrowed by which token. */
export function payerTerms(call: JobCall) {
  const { owner, issuedAt, tokenId } = call.principal;
  const { name, model } = call.target;
  return { owner, bearer: { issuedAt, tokenId }, model: name, kind: model?.kind, ...claimsOf(call) };
}

/**
 * What an idempotency key stands for. A small body is compared whole; a large one by its first bytes, and later by its
 * digest.
 */
export type KeyedBody = Pick<Envelope, "bytes" | "digest">;

export function idempotencyOf(
  call: JobCall,
  operation: string,
  body: KeyedBody,
): Promise<NonNullable<AdmitRequest["idempotency"]>> | undefined {
  const key = keyOf(call);
  if (key === undefined) return undefined;
  return fingerprint(call, operation, body).then((fingerprint) => ({ key, fingerprint }));
}

/**
 * Of a large body only the first bytes are hashed, and not its stated length: `refuseOtherBody` compares the whole
 * digest later.
 */
async function fingerprint(call: JobCall, operation: string, { bytes, digest }: KeyedBody): Promise<string> {
  const size = digest ? "large" : bytes.byteLength;
  const head = new TextEncoder().encode(`${operation}\n${call.target.name}\n${size}\n`);
  const whole = new Uint8Array(head.byteLength + bytes.byteLength);
  whole.set(head);
  whole.set(bytes, head.byteLength);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", whole)).toHex();
}

/** The key stands for another large body. */
export async function refuseOtherBody({ digest }: KeyedBody, first: { readonly digest?: string }): Promise<void> {
  if (digest && (await digest()) !== first.digest) {
    throw new Problem("IDEMPOTENCY_MISMATCH", "This Idempotency-Key was used for another body.");
  }
}
