// Requests and meters as the tests of quotas have them: time passed in, nothing asked of the outside.
import { env } from "cloudflare:workers";
import { newAdmission } from "../../../src/gateway/admission.ts";
import type { AdmitAnswer, AdmitRequest, Ending } from "../../../src/gateway/quota/metering.ts";
import type { UserMeter } from "../../../src/gateway/quota/user-meter.ts";
import { type Remote, remote } from "../../../src/wire/remote.ts";

/** A noon in the middle of a month, and in the future: no alarm of the tests rings by itself. */
export const noon = Date.UTC(2031, 5, 16, 12);

export function request(change: Partial<AdmitRequest> = {}): AdmitRequest {
  return {
    admission: newAdmission(noon),
    owner: "user:ada",
    bearer: { issuedAt: noon, tokenId: undefined },
    model: "flux",
    kind: "image",
    operation: "run",
    plan: "unlimited",
    planFrom: "token",
    plans: "{}",
    token: undefined,
    reserveMicroUsd: 20_000,
    ttlMs: 86_400_000,
    retentionMs: 1_800_000,
    webhook: undefined,
    idempotency: undefined,
    ...change,
  };
}

export function ending(admission: string, change: Partial<Ending> = {}): Ending {
  const at = { seenAt: noon + 1000, completedAt: noon + 1000 };
  return { admission, ref: null, status: "COMPLETED", costMicroUsd: 15_000, ...at, ...change };
}

export function stubOf(payer: string): DurableObjectStub<UserMeter> {
  return env.USER_METER.getByName(payer);
}

export function meterOf(payer: string): Remote<UserMeter> {
  return remote<UserMeter>(env.USER_METER, payer);
}

/** The code of a refusal; undefined where it was none. */
export function codeOf(answer: AdmitAnswer): string | undefined {
  return "code" in answer ? answer.code : undefined;
}
