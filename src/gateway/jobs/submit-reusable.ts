// Submitting what may have been asked before: answered from the cache, joined to a job in flight, or relayed and shared.
import { limits } from "../../contract/limits.ts";
import { nameOfFault, Problem } from "../../errors.ts";
import { keepAliveMs } from "../media/flight.ts";
import type { UpstreamJob } from "../upstream/upstream-answer.ts";
import { asSync, newAdmission } from "./admission-id.ts";
import { admitRequest } from "./admit-request.ts";
import { answerJob } from "./answer.ts";
import { followJob } from "./follow.ts";
import { handlesOf } from "./handle.ts";
import { answerHit } from "./hit.ts";
import { type JobCall, jobKey, survivesDisconnect } from "./job-call.ts";
import { metered } from "./metered.ts";
import { setQuota } from "./quota-headers.ts";
import { namesNoJob, relay, type TakenJob } from "./relay.ts";
import { sendsFiles } from "./sent-links.ts";
import { bindTaken, openEnvelope, replay, type SubmitOptions, submissionOf, submit } from "./submit.ts";

/** How often a request joins again after its leader gave up; then it is submitted alone. */
const maxJoins = 3;
/**
 * A request that waited longer than this fails instead of going alone. Many others waited with it, and each would pay
 * for a job of its own.
 */
const longestAloneMs = 15_000;

export async function submitOrReuse(call: JobCall, operation: "run" | "runsync", waitMs = 0): Promise<Response> {
  const envelope = await openEnvelope(call, operation);
  const options = { operation, waitMs, envelope };
  const naming = nameOf(call, options);
  const name = naming instanceof Promise ? await naming : naming;
  if (name === undefined) return withCacheHeader(call, await submitUnshared(call, options), "BYPASS");
  const { reuse } = call.images;
  const finding = reuse.find(name, Date.now());
  const found = finding instanceof Promise ? await call.timed("kv", finding) : finding;
  const hit = found && (await answerHit(call, options, found, sharedAdmission(operation, Date.now())));
  if (hit) return hit;
  reuse.forget(name);
  return submitShared(call, options, name);
}

function submitUnshared(call: JobCall, options: SubmitOptions): Promise<Response> {
  return submit(call, options, newAdmission(Date.now()));
}

/** A shared job is always an async one of the upstream's. A `runsync` call's handle must still begin with `sync-`. */
function sharedAdmission(operation: "run" | "runsync", now: number): string {
  const admission = newAdmission(now);
  return operation === "runsync" ? asSync(admission) : admission;
}

/**
 * Undefined if the request must get a job of its own: the caller sends `no-cache`, or more than the input decides its
 * fate. For example, a leader's `policy` with a short ttl would end the others' job, too. A shared job is a `run`
 * upstream, whose body has no room for the files of a `runsync`.
 */
function nameOf(call: JobCall, { operation, envelope }: SubmitOptions): string | Promise<string> | undefined {
  const { input, isInputAlone, webhook } = envelope;
  if (operation === "runsync" && sendsFiles(call, envelope)) return undefined;
  const anew = /\bno-(cache|store)\b/i.test(call.request.headers.get("Cache-Control") ?? "");
  if (anew || !isInputAlone || webhook !== undefined) return undefined;
  return call.images.reuse.nameOf(call.target.model, input, call.principal);
}

function withCacheHeader(call: JobCall, response: Response, cache: "MISS" | "JOINED" | "BYPASS"): Response {
  if (cache === "BYPASS" && call.target.model?.output === "text") return response;
  call.exchange.cache = cache;
  response.headers.set("X-Cache", cache);
  return response;
}

async function submitShared(call: JobCall, options: SubmitOptions, name: string): Promise<Response> {
  const { flights } = call.images;
  const alone = async () => withCacheHeader(call, await submitUnshared(call, options), "MISS");
  const begunAt = Date.now();
  for (let joins = 0; joins < maxJoins; joins++) {
    const admission = sharedAdmission(options.operation, Date.now());
    const place = await flights.join(name, admission);
    if (!place) {
      // This request goes alone, so no other may wait for it.
      leaveFlight(call, name, admission);
      return alone();
    }
    if (place.role === "served") return (await answerHit(call, options, place.entry, admission)) ?? alone();
    if (place.role === "lead")
      return withCacheHeader(call, await submitAsLeader(call, options, admission, name), "MISS");
    const joined = await submitAsFollower(call, options, admission, name, place.leader);
    if (joined) return withCacheHeader(call, joined, "JOINED");
  }
  if (Date.now() - begunAt > longestAloneMs) throw leadersLost;
  return alone();
}

const leadersLost = new Problem("UPSTREAM_TIMEOUT", "The model service did not answer in time.");

function leaveFlight(call: JobCall, name: string, admission: string): void {
  call.waitUntil(call.images.flights.leaveUnstarted(name, admission).catch(logUnshared));
}

async function submitAsLeader(
  call: JobCall,
  options: SubmitOptions,
  admission: string,
  name: string,
): Promise<Response> {
  const led = await survivesDisconnect(call, startJob(call, options, admission, name));
  if ("replay" in led) return replay(call, options, led.replay);
  const response = await answerSubmit(call, options, admission, led.done);
  setQuota(response.headers, led.quota);
  return response;
}

/** To know the upstream's id early, a sync job is relayed as an async one and waited for. */
async function startJob(call: JobCall, options: SubmitOptions, admission: string, name: string) {
  const { flights } = call.images;
  /**
   * True once the upstream was asked: its failure is told to all followers. A refusal before that (e.g. by quota) is
   * the leader's own, and another request leads.
   */
  let concernsAll = false;
  const keepingAlive = setInterval(() => {
    call.waitUntil(flights.keepAlive(name, admission).catch(logUnshared));
  }, keepAliveMs);
  try {
    const submission = submissionOf(call, options, admission);
    const led = await metered(call, asRun(await admitRequest(call, submission)), async (attempt) => {
      concernsAll = true;
      const taken = await relay(call, { ...submission, operation: "run" }, attempt);
      if ("large" in taken) throw namesNoJob;
      return taken;
    });
    if ("replay" in led) await giveUp(call, name, admission);
    else await announceJob(call, options, admission, name, led.done);
    return led;
  } catch (error) {
    const { code, message: detail } = error instanceof Problem ? error : unknownFailure;
    await flights.fail(name, admission, concernsAll ? { code, detail } : undefined).catch(logUnshared);
    throw error;
  } finally {
    clearInterval(keepingAlive);
  }
}

async function announceJob(
  call: JobCall,
  { envelope }: SubmitOptions,
  admission: string,
  name: string,
  taken: TakenJob,
) {
  const { upstreamId } = taken;
  bindTaken(call, admission, taken);
  if (!(await isRegistered(call, name, admission, upstreamId, "lead"))) return giveUp(call, name, admission);
  const request = JSON.stringify({ input: envelope.input });
  await call.images.flights.start(name, admission, upstreamId, request).catch(logUnshared);
}

/**
 * Tells the job's object that this admission shares it. If that fails, its cancel would end the job for all: so a
 * leader gives the flight up, and a follower does not join.
 */
async function isRegistered(
  call: JobCall,
  name: string,
  admission: string,
  upstreamId: string,
  rider: "lead" | "joined",
) {
  try {
    await call.images.flights.register(name, { ...jobKey(call), upstreamId }, admission, rider);
    return true;
  } catch (error) {
    logUnshared(error);
    return false;
  }
}

async function giveUp(call: JobCall, name: string, admission: string): Promise<void> {
  await call.images.flights.fail(name, admission, undefined).catch(logUnshared);
}

const unknownFailure = new Problem("UPSTREAM_FAILED", "The model service failed.");

/** The upstream keeps an async job's result longer. */
function asRun<T extends { readonly retentionMs: number }>(request: T): T {
  return { ...request, retentionMs: limits.runRetentionMs };
}

/** Undefined if the leader gave up before its job started, or was lost. */
async function submitAsFollower(
  call: JobCall,
  options: SubmitOptions,
  admission: string,
  name: string,
  leader: string,
): Promise<Response | undefined> {
  const joined = await survivesDisconnect(call, followLeader(call, options, admission, name, leader));
  if ("replay" in joined) return replay(call, options, joined.replay);
  if (!joined.done) return undefined;
  const response = await answerSubmit(call, options, admission, joined.done);
  setQuota(response.headers, joined.quota);
  return response;
}

async function followLeader(call: JobCall, options: SubmitOptions, admission: string, name: string, leader: string) {
  const { flights } = call.images;
  try {
    const request = asRun(await admitRequest(call, submissionOf(call, options, admission)));
    const followed = await metered(call, { ...request, reserveMicroUsd: 0, joined: true }, async () => {
      const upstreamId = await flights.awaitStart(name, leader);
      if (upstreamId === undefined || !(await isRegistered(call, name, admission, upstreamId, "joined")))
        return undefined;
      return { job: { status: "IN_QUEUE" }, upstreamId, askedAt: Date.now() };
    });
    if ("replay" in followed || !followed.done) leaveFlight(call, name, admission);
    else bindTaken(call, admission, followed.done);
    return followed;
  } catch (error) {
    leaveFlight(call, name, admission);
    throw error;
  }
}

/** A run is answered at once, a runsync once its job ended or its wait is over. */
async function answerSubmit(
  call: JobCall,
  { operation, waitMs }: SubmitOptions,
  admission: string,
  { job, upstreamId, askedAt }: { job: UpstreamJob; upstreamId: string; askedAt: number },
): Promise<Response> {
  const handle = handlesOf(call.config).mint(jobKey(call), { upstreamId, admission });
  if (operation === "run") return answerJob(call, job, { upstreamId, admission }, handle, { askedAt });
  return followJob(call, { upstreamId, admission }, handle, waitMs);
}

function logUnshared(error: unknown): void {
  console.warn(JSON.stringify({ flight: "not shared", error: nameOfFault(error) }));
}
