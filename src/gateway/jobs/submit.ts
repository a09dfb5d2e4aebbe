// Submitting a job: checked, admitted by the payer's meter, relayed with the server's key, bound to its owner.
import type { Context } from "hono";
import { limits } from "../../contract/limits.ts";
import { Problem } from "../../errors.ts";
import type { AdmitAnswer, AdmitRequest } from "../quota/metering.ts";
import { openBody } from "../request-body.ts";
import { callUpstream } from "../upstream.ts";
import { readJob, type UpstreamJob } from "../upstream-answer.ts";
import { answerJob, logUnsettled } from "./answer.ts";
import { type Envelope, largeEnvelope, type Relayed, wholeEnvelope } from "./envelope.ts";
import { handlesOf, isRef } from "./handle.ts";
import { hookUrl } from "./hook-url.ts";
import type { JobEnv } from "./target.ts";

const idempotencyKey = /^[\x21-\x7e]{1,255}$/;

export async function submit(c: Context<JobEnv>, submission: Submission): Promise<Response> {
  const { operation, waitMs, admission } = submission;
  const admitted = await admit(c, await admitRequest(c, submission));
  if ("replay" in admitted) return replay(c, operation, waitMs, admitted.replay);

  const job = await relay(c, submission);
  const ref = job.id;
  if (!isRef(ref)) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer names no job.");
  const handle = await handlesOf(c.get("config")).mint(jobKey(c), { ref, admission });
  c.executionCtx.waitUntil(c.get("meter")().bind(admission, ref).catch(logUnsettled));
  const response = await answerJob(c, job, { ref, admission }, handle);
  setQuota(response.headers, admitted);
  return response;
}

export async function openEnvelope(c: Context<JobEnv>, operation: "run" | "runsync"): Promise<Envelope> {
  const limit = operation === "run" ? limits.runPayloadBytes : limits.runsyncPayloadBytes;
  const body = await openBody(c.req.raw, limit);
  const rules = { target: c.get("target"), webhookHosts: c.get("config").webhookHosts };
  return "whole" in body ? wholeEnvelope(body.whole, rules) : largeEnvelope(body.large, rules);
}

export function jobKey(c: Context<JobEnv>) {
  return { owner: c.get("principal").owner, model: c.get("target").name };
}

export interface Submission {
  readonly operation: "run" | "runsync";
  readonly waitMs: number;
  readonly admission: string;
  readonly envelope: Envelope;
}

export async function admitRequest(
  c: Context<JobEnv>,
  { operation, waitMs, admission, envelope }: Submission,
): Promise<AdmitRequest> {
  const key = c.req.header("Idempotency-Key");
  if (key !== undefined && !idempotencyKey.test(key)) {
    throw new Problem("INVALID_REQUEST", "Idempotency-Key: expected 1 to 255 visible ASCII characters");
  }
  return {
    ...payerTerms(c),
    ...{ admission, operation, reserveMicroUsd: envelope.reserveMicroUsd, ttlMs: envelope.ttlMs },
    retentionMs: operation === "run" ? limits.runRetentionMs : Math.max(waitMs, limits.runsyncRetentionMs.min),
    webhook: envelope.webhook,
    idempotency: key === undefined ? undefined : { key, fingerprint: await fingerprint(c, operation, envelope.bytes) },
  };
}

/** Who pays, under which plan, narrowed by which token. */
export function payerTerms(c: Context<JobEnv>) {
  const { owner, issuedAt, plan, tokenId, rules, maxCostMicroUsd } = c.get("principal");
  const { name, model } = c.get("target");
  const narrowed = tokenId !== undefined && (rules !== undefined || maxCostMicroUsd !== undefined);
  const ceiling = maxCostMicroUsd === undefined ? {} : { maxCostMicroUsd };
  return {
    owner,
    bearer: { issuedAt, tokenId },
    model: name,
    kind: model?.kind,
    plan: plan ?? c.get("config").defaultPlan,
    plans: Object.fromEntries([...c.get("control").plans].map(([plan, { rules }]) => [plan, rules])),
    token: narrowed ? { id: tokenId, rules: rules ?? [], ...ceiling } : undefined,
  };
}

async function fingerprint(c: Context<JobEnv>, operation: string, bytes: Uint8Array): Promise<string> {
  const head = new TextEncoder().encode(`${operation}\n${c.get("target").name}\n`);
  const whole = new Uint8Array(head.byteLength + bytes.byteLength);
  whole.set(head);
  whole.set(bytes, head.byteLength);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

type Admitted = Exclude<AdmitAnswer, { code: unknown }>;

/** A refusal is thrown with what the caller may know of the rule; a meter that cannot be reached lets nobody in. */
export async function admit(c: Context<JobEnv>, request: AdmitRequest): Promise<Admitted> {
  const answer = await c
    .get("meter")()
    .admit(request)
    .catch(() => {
      throw new Problem("METER_UNAVAILABLE", "Your quota cannot be checked at the moment.", { "Retry-After": "1" });
    });
  if (!("code" in answer)) return answer;
  const headers = new Headers();
  if (answer.retryAfterSeconds !== undefined) headers.set("Retry-After", String(answer.retryAfterSeconds));
  setQuota(headers, answer);
  throw new Problem(answer.code, answer.detail, Object.fromEntries(headers));
}

export function setQuota(headers: Headers, answer: AdmitAnswer): void {
  if (!("quota" in answer) || !answer.quota) return;
  headers.set("RateLimit-Policy", answer.quota.policy);
  headers.set("RateLimit", answer.quota.limit);
}

/** The upstream surely did not take the job: nothing is owed. After anything else it may have. */
const surelyNotTaken: ReadonlySet<string> = new Set([
  ...["UPSTREAM_DOWN", "UPSTREAM_REFUSED", "UPSTREAM_REDIRECT", "UPSTREAM_INVALID", "UPSTREAM_BUSY", "JOB_NOT_FOUND"],
]);

export async function relay(
  c: Context<JobEnv>,
  { operation, waitMs, admission, envelope }: Submission,
): Promise<UpstreamJob> {
  const upstream = c.get("upstream");
  const relayed = envelope.relayed(await hookUrl(c, admission));
  try {
    const response = await passed(relayed, () =>
      callUpstream(upstream, {
        ...{ method: "POST", segments: [c.get("target").name, operation], repeatable: false, waitMs },
        ...(operation === "runsync" && { query: `wait=${waitMs}` }),
        body: relayed.body,
      }),
    );
    await oweWebhook(c, admission, relayed);
    return await readJob(response, upstream.key);
  } catch (error) {
    const released =
      error instanceof Problem && (surelyNotTaken.has(error.code) || error.status === 400 || error.status === 413);
    if (released) c.executionCtx.waitUntil(c.get("meter")().release(admission).catch(logUnsettled));
    throw error instanceof Problem && error.code === "JOB_NOT_FOUND" ? unknownUpstream : error;
  }
}

/** A body that was cut off because of a fault of its own is answered with that fault, whatever the upstream made of it. */
async function passed(relayed: Relayed, call: () => Promise<Response>): Promise<Response> {
  if (!relayed.checked) return call();
  const [checked, called] = await Promise.allSettled([relayed.checked, call()]);
  const fault = checked.status === "rejected" ? checked.reason : undefined;
  const ownFault = fault instanceof Problem && fault.code !== "UPSTREAM_UNREACHABLE";
  if (ownFault && called.status === "fulfilled") await called.value.body?.cancel();
  if (ownFault) throw fault;
  if (called.status === "rejected") throw called.reason;
  return called.value;
}

/** What the client asks for that only a whole body tells. */
async function oweWebhook(c: Context<JobEnv>, admission: string, { checked }: Relayed): Promise<void> {
  const request = await checked;
  if (request?.webhook !== undefined) await c.get("meter")().owe(admission, request.webhook);
}

const unknownUpstream = new Problem("UPSTREAM_INVALID", "The model service does not know this model.");

/** The same key and body: the job that the first call made. */
export async function replay(
  c: Context<JobEnv>,
  operation: "run" | "runsync",
  waitMs: number,
  job: { ref: string; admission: string },
): Promise<Response> {
  const handle = await handlesOf(c.get("config")).mint(jobKey(c), job);
  const upstream = c.get("upstream");
  const model = c.get("target").name;
  if (operation === "run") return c.json({ id: handle, status: "IN_QUEUE" });
  const response = await callUpstream(upstream, {
    ...{ method: "GET", segments: [model, "status-sync", job.ref], query: `wait=${waitMs}`, repeatable: true, waitMs },
  });
  return answerJob(c, await readJob(response, upstream.key), job, handle);
}
