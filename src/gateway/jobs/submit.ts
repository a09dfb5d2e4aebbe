// Submitting a job: checked, admitted by the payer's meter, relayed with the server's key, bound to its owner.
import type { Context } from "hono";
import type { JobRequest } from "../../contract/job-request.ts";
import { limits } from "../../contract/limits.ts";
import { type ErrorCode, Problem } from "../../errors.ts";
import { claimsOf } from "../claims.ts";
import type { AdmitAnswer, AdmitRequest } from "../quota/metering.ts";
import { openBody } from "../request-body.ts";
import { type Answered, callUpstream, dropBody } from "../upstream.ts";
import { type OpenedJob, openJob, readJob } from "../upstream-answer.ts";
import { answerJob, logUnsettled } from "./answer.ts";
import { type Envelope, largeEnvelope, wholeEnvelope } from "./envelope.ts";
import { handlesOf, isRef } from "./handle.ts";
import { hookUrl } from "./hook-url.ts";
import { answerLarge } from "./large-answer.ts";
import { logJob } from "./logged-job.ts";
import { outlive } from "./outlive.ts";
import { type JobEnv, jobKey } from "./target.ts";

const idempotencyKey = /^[\x21-\x7e]{1,255}$/;

export function submit(c: Context<JobEnv>, submission: Submission): Promise<Response> {
  return outlive(c, takeIn(c, submission));
}

async function takeIn(c: Context<JobEnv>, submission: Submission): Promise<Response> {
  const { operation, waitMs, admission } = submission;
  const admitted = await admit(c, await admitRequest(c, submission));
  if ("replay" in admitted) {
    const { digest } = submission.envelope;
    if (digest && (await digest()) !== admitted.replay.digest) throw otherBody;
    return replay(c, operation, waitMs, admitted.replay);
  }

  const opened = await relay(c, submission);
  if ("large" in opened) {
    const response = await answerLarge(c, opened.large, { admission });
    setQuota(response.headers, admitted);
    return response;
  }
  const job = opened.whole;
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
    idempotency: key === undefined ? undefined : { key, fingerprint: await fingerprint(c, operation, envelope) },
  };
}

/** Who pays for what, under which plan, narrowed by which token. */
export function payerTerms(c: Context<JobEnv>) {
  const { owner, issuedAt, tokenId } = c.get("principal");
  const { name, model } = c.get("target");
  return { owner, bearer: { issuedAt, tokenId }, model: name, kind: model?.kind, ...claimsOf(c.var) };
}

/** A large body goes by its beginning here, whatever length it states: its digest decides. */
async function fingerprint(c: Context<JobEnv>, operation: string, { bytes, digest }: Envelope): Promise<string> {
  const size = digest ? "large" : bytes.byteLength;
  const head = new TextEncoder().encode(`${operation}\n${c.get("target").name}\n${size}\n`);
  const whole = new Uint8Array(head.byteLength + bytes.byteLength);
  whole.set(head);
  whole.set(bytes, head.byteLength);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", whole)).toHex();
}

const otherBody = new Problem("IDEMPOTENCY_MISMATCH", "This Idempotency-Key was used for another body.");

type Admitted = Exclude<AdmitAnswer, { code: unknown }>;

/** A refusal is thrown with what the caller may know of the rule; a meter that cannot be reached lets nobody in. */
export async function admit(c: Context<JobEnv>, request: AdmitRequest): Promise<Admitted> {
  const answer = await c
    .get("meter")()
    .admit(request)
    .catch(() => {
      throw meterAway();
    });
  if (!("code" in answer)) return answer;
  const headers = new Headers();
  if (answer.retryAfterSeconds !== undefined) headers.set("Retry-After", String(answer.retryAfterSeconds));
  setQuota(headers, answer);
  throw new Problem(answer.code, answer.detail, Object.fromEntries(headers));
}

function meterAway(): Problem {
  return new Problem("METER_UNAVAILABLE", "Your quota cannot be checked at the moment.", { "Retry-After": "1" });
}

export function setQuota(headers: Headers, answer: AdmitAnswer): void {
  if (!("quota" in answer) || !answer.quota) return;
  const { policy, limit } = answer.quota;
  if (policy !== "") headers.set("RateLimit-Policy", policy);
  if (limit !== "") headers.set("RateLimit", limit);
}

/** It said so itself, or never had all of the body: nothing is owed. After anything else it may have taken the job. */
export function tookNothing(error: unknown, answered: Answered | undefined, cut?: () => boolean): boolean {
  const status = answered?.response.status;
  if (!answered?.response.ok && cut?.()) return true;
  if (status !== undefined) return (status >= 300 && status < 500) || status === 503;
  return error instanceof Problem && (neverAsked.has(error.code) || error.status < 500);
}

const neverAsked: ReadonlySet<ErrorCode> = new Set(["UPSTREAM_DOWN", "METER_UNAVAILABLE"]);

export async function relay(
  c: Context<JobEnv>,
  { operation, waitMs, admission, envelope }: Submission,
): Promise<OpenedJob> {
  const upstream = c.get("upstream");
  const relayed = envelope.relayed(await hookUrl(c, admission), {
    digested: c.req.header("Idempotency-Key") !== undefined,
    accept: (request, digest) => tellOfPassed(c, admission, request, digest),
  });
  let answered: Answered | undefined;
  try {
    answered = await passed(relayed.checked, () =>
      callUpstream(upstream, {
        ...{ method: "POST", segments: [c.get("target").name, operation], repeatable: false, waitMs },
        ...(operation === "runsync" && { query: `wait=${waitMs}` }),
        ...{ body: relayed.body, ...(relayed.checked && { sent: relayed.checked }) },
      }),
    );
    return await openJob(answered);
  } catch (error) {
    if (tookNothing(error, answered, relayed.cut))
      c.executionCtx.waitUntil(c.get("meter")().release(admission).catch(logUnsettled));
    throw error instanceof Problem && error.code === "JOB_NOT_FOUND" ? unknownUpstream : error;
  }
}

/** How long after a broken call the body's own fault may take to show. */
const faultMs = 1_000;

/** A body that was cut off because of a fault of its own is answered with that fault, whatever the upstream made of it. */
export async function passed(sent: Promise<unknown> | undefined, call: () => Promise<Answered>): Promise<Answered> {
  if (!sent) return call();
  const fault = sent.then(
    () => undefined,
    (error: unknown) => (error instanceof Problem && error.code !== "UPSTREAM_UNREACHABLE" ? error : undefined),
  );
  const inTime = () => Promise.race([fault, scheduler.wait(faultMs)]);
  const called = await call().catch(async (error: unknown) => {
    throw (await inTime()) ?? error;
  });
  // One that refuses need not read to the end; one that takes the job before the end has not read what was sent.
  const own = called.response.ok ? await inTime() : undefined;
  if (own) await dropBody(called);
  if (own) throw own;
  return called;
}

/** Known once a large body has passed, and told before its last byte: there is no job yet, so neither comes too late. */
async function tellOfPassed(
  c: Context<JobEnv>,
  admission: string,
  { webhook }: JobRequest,
  digest: string | undefined,
): Promise<void> {
  const meter = c.get("meter")();
  await Promise.all([
    webhook !== undefined && meter.owe(admission, webhook),
    digest !== undefined && meter.identify(admission, digest),
  ]).catch(() => {
    throw meterAway();
  });
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
  if (operation === "run") {
    logJob(c, "IN_QUEUE");
    return c.json({ id: handle, status: "IN_QUEUE" });
  }
  const answered = await callUpstream(upstream, {
    ...{ method: "GET", segments: [model, "status-sync", job.ref], query: `wait=${waitMs}`, repeatable: true, waitMs },
  });
  return answerJob(c, await readJob(answered), job, handle);
}
