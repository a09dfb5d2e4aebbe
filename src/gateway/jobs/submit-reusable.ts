// Submitting what may have been asked before: answered from the cache, joined to a job in flight, or relayed and shared.
import type { Context } from "hono";
import { limits } from "../../contract/limits.ts";
import { nameOfFault, Problem } from "../../errors.ts";
import { asSync, newAdmission } from "../admission.ts";
import type { Reusable } from "../images/image-cache.ts";
import type { Owned } from "../images/reuse.ts";
import { callUpstream } from "../upstream.ts";
import { openJob, type UpstreamJob } from "../upstream-answer.ts";
import { answerJob, formatUsd, logUnsettled, originOf } from "./answer.ts";
import type { Envelope } from "./envelope.ts";
import { handlesOf, isRef } from "./handle.ts";
import { answerLarge } from "./large-answer.ts";
import { logJob } from "./logged-job.ts";
import { outlive } from "./outlive.ts";
import { admit, admitRequest, openEnvelope, relay, replay, type Submission, setQuota, submit } from "./submit.ts";
import { type JobEnv, jobKey } from "./target.ts";

/** A flight that is given up is boarded anew; after so many the request goes alone. */
const maxBoardings = 3;

export async function submitOrReuse(c: Context<JobEnv>, operation: "run" | "runsync", waitMs = 0): Promise<Response> {
  const envelope = await openEnvelope(c, operation);
  const asked = { operation, waitMs, envelope };
  const name = await nameOf(c, envelope);
  if (name === undefined) return marked(c, await goAlone(c, asked), "BYPASS");
  const { reuse } = c.get("images");
  const found = await reuse.find(name, Date.now());
  const hit = found && (await answerHit(c, operation, found));
  if (hit) return hit;
  reuse.forget(name);
  return fly(c, asked, name);
}

/** A submission that is not admitted yet. */
type Asked = Omit<Submission, "admission">;

function goAlone(c: Context<JobEnv>, asked: Asked): Promise<Response> {
  return submit(c, { ...asked, admission: newAdmission(Date.now()) });
}

/** No sync job of the upstream's is shared, and still a sync call's id begins as the contract says. */
function sharedAdmission(operation: "run" | "runsync", now: number): string {
  const admission = newAdmission(now);
  return operation === "runsync" ? asSync(admission) : admission;
}

/** Undefined for what is asked anew: by the caller's wish, or because its answer would not be the same to others. */
async function nameOf(c: Context<JobEnv>, { input, hasS3Config, webhook }: Envelope): Promise<string | undefined> {
  const anew = /\bno-(cache|store)\b/i.test(c.req.header("Cache-Control") ?? "");
  if (anew || hasS3Config || webhook !== undefined) return undefined;
  return c.get("images").reuse.nameOf(c.get("target").model, input, c.get("principal"));
}

function marked(c: Context<JobEnv>, response: Response, cache: "HIT" | "MISS" | "JOINED" | "BYPASS"): Response {
  if (cache === "BYPASS" && c.get("target").model?.output === "text") return response;
  c.get("exchange").cache = cache;
  response.headers.set("X-Cache", cache);
  return response;
}

/** No money, and the meter is not waited for. Undefined where no link can be made, which is a miss. */
async function answerHit(
  c: Context<JobEnv>,
  operation: "run" | "runsync",
  found: Reusable,
): Promise<Response | undefined> {
  const { reuse } = c.get("images");
  const now = Date.now();
  const principal = c.get("principal");
  const own = await reuse.own(found, principal, now).catch(() => undefined);
  if (!own) return undefined;
  if (own.isNew) c.executionCtx.waitUntil(listOwned(c, own).catch(logUnlisted));
  const job = { ref: reuse.refOf(own.key), admission: sharedAdmission(operation, now) };
  const id = await handlesOf(c.get("config")).mint(jobKey(c), job);
  const answer = operation === "run" ? { status: "IN_QUEUE" } : reuse.answer(own, originOf(c));
  logJob(c, answer.status);
  c.get("exchange").costMicroUsd = 0;
  const ageSeconds = Math.max(0, Math.floor((now - own.media.completedAt) / 1000));
  const response = c.json({ id, ...answer }, 200, { Age: String(ageSeconds), "X-Cost": formatUsd(0) });
  return marked(c, response, "HIT");
}

/** The picture was paid for by whoever asked first. */
async function listOwned(c: Context<JobEnv>, { key, media }: Owned): Promise<void> {
  await c
    .get("meter")()
    .addToGallery(media.owner, { ...media, key, cost: 0 });
}

function logUnlisted(error: unknown): void {
  console.warn(JSON.stringify({ gallery: "a link is not listed", error: nameOfFault(error) }));
}

async function fly(c: Context<JobEnv>, asked: Asked, name: string): Promise<Response> {
  const { flights } = c.get("images");
  for (let boardings = 0; boardings < maxBoardings; boardings++) {
    const admission = sharedAdmission(asked.operation, Date.now());
    const boarded = await flights.board(name, admission).catch(() => undefined);
    if (!boarded) break;
    if (boarded.role === "served") {
      const hit = await answerHit(c, asked.operation, boarded.entry);
      if (hit) return hit;
      break;
    }
    if (boarded.role === "lead") return marked(c, await lead(c, { ...asked, admission }, name), "MISS");
    const joined = await join(c, { ...asked, admission }, name, boarded.leader);
    if (joined) return marked(c, joined, "JOINED");
  }
  return marked(c, await goAlone(c, asked), "MISS");
}

async function lead(c: Context<JobEnv>, submission: Submission, name: string): Promise<Response> {
  const led = await outlive(c, takeOff(c, submission, name));
  if (led instanceof Response) return led;
  const response = await follow(c, submission, led.ref, led.job);
  setQuota(response.headers, led.admitted);
  return response;
}

/** To know the upstream's id early, a sync job is relayed as an async one and waited for. */
async function takeOff(c: Context<JobEnv>, submission: Submission, name: string) {
  const { operation, waitMs, admission } = submission;
  const { flights } = c.get("images");
  const request = await admitRequest(c, submission).then(asRun, (error) => abandon(error));
  const admitted = await admit(c, request).catch((error) => abandon(error));
  if ("replay" in admitted) {
    await flights.ground(name, admission, undefined).catch(logUnshared);
    return replay(c, operation, waitMs, admitted.replay);
  }
  const opened = await relay(c, { ...submission, operation: "run" }).catch((error) => abandon(error, true));
  const job = "whole" in opened ? opened.whole : undefined;
  const ref = job?.id;
  if (!job || !isRef(ref))
    return abandon(new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer names no job."), true);
  c.executionCtx.waitUntil(c.get("meter")().bind(admission, ref).catch(logUnsettled));
  await Promise.all([
    flights.takeOff(name, admission, ref),
    flights.expect(name, { ...jobKey(c), ref }, admission, "lead"),
  ]).catch(logUnshared);
  return { job, ref, admitted };

  /** Who may not lead lets another lead; what the upstream said is said to all. */
  async function abandon(error: unknown, everybodys = false): Promise<never> {
    const { code, message: detail } = error instanceof Problem ? error : unknownFailure;
    await flights.ground(name, admission, everybodys ? { code, detail } : undefined).catch(logUnshared);
    throw error;
  }
}

const unknownFailure = new Problem("UPSTREAM_FAILED", "The model service failed.");

/** The upstream keeps an async job's result longer. */
function asRun<T extends { readonly retentionMs: number }>(request: T): T {
  return { ...request, retentionMs: limits.runRetentionMs };
}

/** Undefined where the flight was given up before it took off. */
async function join(
  c: Context<JobEnv>,
  submission: Submission,
  name: string,
  leader: string,
): Promise<Response | undefined> {
  const joined = await outlive(c, ride(c, submission, name, leader));
  if (!joined || joined instanceof Response) return joined;
  const response = await follow(c, submission, joined.ref, { status: "IN_QUEUE" });
  setQuota(response.headers, joined.admitted);
  return response;
}

async function ride(c: Context<JobEnv>, submission: Submission, name: string, leader: string) {
  const { operation, waitMs, admission } = submission;
  const { flights } = c.get("images");
  const meter = c.get("meter")();
  const getOff = () => c.executionCtx.waitUntil(flights.unboard(name, admission).catch(logUnshared));
  const release = () => c.executionCtx.waitUntil(meter.release(admission).catch(logUnsettled));
  const refused = (error: unknown): never => {
    getOff();
    throw error;
  };
  const request = await admitRequest(c, submission).then(asRun, refused);
  const admitted = await admit(c, { ...request, reserveMicroUsd: 0, joined: true }).catch(refused);
  if ("replay" in admitted) {
    getOff();
    return replay(c, operation, waitMs, admitted.replay);
  }
  const ref = await flights.awaitRef(name, leader).catch((error) => {
    release();
    return refused(error);
  });
  if (ref === undefined) {
    release();
    return undefined;
  }
  c.executionCtx.waitUntil(meter.bind(admission, ref).catch(logUnsettled));
  await flights.expect(name, { ...jobKey(c), ref }, admission, "joined").catch(logUnshared);
  return { ref, admitted };
}

/** A run is answered at once, a runsync once its job ended or its wait is over. */
async function follow(
  c: Context<JobEnv>,
  { operation, waitMs, admission }: Submission,
  ref: string,
  job: UpstreamJob,
): Promise<Response> {
  const handle = await handlesOf(c.get("config")).mint(jobKey(c), { ref, admission });
  if (operation === "run") return answerJob(c, job, { ref, admission }, handle);
  const upstream = c.get("upstream");
  const call = { method: "GET", segments: [c.get("target").name, "status-sync", ref], repeatable: true } as const;
  const { signal } = c.req.raw;
  const answered = await callUpstream(upstream, { ...call, query: `wait=${waitMs}`, waitMs, signal });
  const opened = await openJob(answered);
  if ("large" in opened) return answerLarge(c, opened.large, { ref, admission });
  return answerJob(c, opened.whole, { ref, admission }, handle);
}

function logUnshared(error: unknown): void {
  console.warn(JSON.stringify({ flight: "not shared", error: nameOfFault(error) }));
}
