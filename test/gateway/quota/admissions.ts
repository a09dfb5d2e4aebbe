// Requests and meters as the tests of quotas have them: time passed in, nothing asked of the outside.
import { env } from "cloudflare:workers";
import { type Remote, remote } from "../../../src/durable/remote.ts";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import type { Job } from "../../../src/gateway/quota/job.ts";
import type { AdmitRequest, Ending, HitAnswer } from "../../../src/gateway/quota/metering.ts";
import type { UserMeter } from "../../../src/gateway/quota/user-meter.ts";

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
    hasCeiling: false,
    reserveMicroUsd: 20_000,
    inputBytes: 400,
    hasNotice: false,
    ttlMs: 86_400_000,
    retentionMs: 1_800_000,
    webhook: undefined,
    idempotency: undefined,
    ...change,
  };
}

export function ending(admission: string, change: Partial<Ending> = {}): Ending {
  const at = { askedAt: noon, seenAt: noon + 1000, completedAt: noon + 1000 };
  return { admission, upstreamId: null, status: "COMPLETED", costMicroUsd: 15_000, ...at, ...change };
}

/** A job's row, as it is just after its admission. */
export function rowOf(change: Partial<Job> = {}): Job {
  return {
    admission: newAdmission(noon),
    turn: 1,
    owner: "user:ada",
    account: "",
    model: "flux",
    kind: "image",
    operation: "run",
    plan: "unlimited",
    planFrom: "token",
    counters: "",
    reserved: 20_000,
    place: 1,
    admittedAt: noon,
    ttlMs: 86_400_000,
    retentionMs: 1_800_000,
    expiresAt: noon + 600_000,
    dueAt: noon + 600_000,
    upstreamId: null,
    boundAt: null,
    guessed: 0,
    doubtedAt: null,
    seen: null,
    seenAt: null,
    noticeAt: null,
    retryOf: null,
    successor: null,
    inputBytes: 400,
    pieces: 0,
    textBytes: 0,
    earlierCost: 0,
    earlierText: 0,
    hasNotice: 0,
    webhook: null,
    noticed: 0,
    idempotencyKey: null,
    network: null,
    status: null,
    charged: 0,
    assumed: 0,
    endedAt: null,
    ...change,
  };
}

export function stubOf(payer: string): DurableObjectStub<UserMeter> {
  return env.USER_METER.getByName(payer);
}

export function meterOf(payer: string): Remote<UserMeter> {
  return remote<UserMeter>(env.USER_METER, payer);
}

/** The code of a refusal; undefined where it was none. */
export function codeOf(answer: HitAnswer): string | undefined {
  return typeof answer === "object" && "code" in answer ? answer.code : undefined;
}
