// Submitting what may have been asked before: answered from the cache, joined to a job in flight, or relayed and shared.
import { limits } from "../../contract/limits.ts";
import { nameOfFault, Problem } from "../../errors.ts";
import { asSync, newAdmission } from "../admission.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import { admitRequest } from "./admit-request.ts";
import { answerJob } from "./answer.ts";
import type { Envelope } from "./envelope.ts";
import { followJob } from "./follow.ts";
import { handlesOf } from "./handle.ts";
import { answerHit } from "./hit.ts";
import { type JobCall, jobKey, outlive } from "./job-call.ts";
import { metered } from "./metered.ts";
import { setQuota } from "./quota-headers.ts";
import { namesNoJob, relay, type TakenJob } from "./relay.ts";
import { type Asked, bindTaken, openEnvelope, replay, submissionOf, submit } from "./submit.ts";

/** A flight that is given up is boarded anew; after so many the request goes alone. */
const maxBoardings = 3;
/** Who waited longer was not refused but left waiting, with all the others: none of them goes alone, since each would pay. */
const longestAloneMs = 15_000;

export async function submitOrReuse(call: JobCall, operation: "run" | "runsync", waitMs = 0): Promise<Response> {
  const envelope = await openEnvelope(call, operation);
  const asked = { operation, waitMs, envelope };
  const name = await nameOf(call, envelope);
  if (name === undefined) return marked(call, await goAlone(call, asked), "BYPASS");
  const { reuse } = call.images;
  const found = await reuse.find(name, Date.now());
  const hit = found && (await answerHit(call, asked, found, sharedAdmission(operation, Date.now())));
  if (hit) return hit;
  reuse.forget(name);
  return fly(call, asked, name);
}

function goAlone(call: JobCall, asked: Asked): Promise<Response> {
  return submit(call, asked, newAdmission(Date.now()));
}

/** No sync job of the upstream's is shared, and still a sync call's id begins as the contract says. */
function sharedAdmission(operation: "run" | "runsync", now: number): string {
  const admission = newAdmission(now);
  return operation === "runsync" ? asSync(admission) : admission;
}

/**
 * Undefined for what is asked anew: by the caller's wish, or because more than its input decides what becomes of it. A leader's
 * `policy` would end the others' job, too.
 */
async function nameOf(call: JobCall, { input, isInputAlone, webhook }: Envelope): Promise<string | undefined> {
  const anew = /\bno-(cache|store)\b/i.test(call.request.headers.get("Cache-Control") ?? "");
  if (anew || !isInputAlone || webhook !== undefined) return undefined;
  return call.images.reuse.nameOf(call.target.model, input, call.principal);
}

function marked(call: JobCall, response: Response, cache: "MISS" | "JOINED" | "BYPASS"): Response {
  if (cache === "BYPASS" && call.target.model?.output === "text") return response;
  call.exchange.cache = cache;
  response.headers.set("X-Cache", cache);
  return response;
}

async function fly(call: JobCall, asked: Asked, name: string): Promise<Response> {
  const { flights } = call.images;
  const alone = async () => marked(call, await goAlone(call, asked), "MISS");
  const begunAt = Date.now();
  for (let boardings = 0; boardings < maxBoardings; boardings++) {
    const admission = sharedAdmission(asked.operation, Date.now());
    const boarded = await flights.board(name, admission);
    if (!boarded) {
      // Nobody is to wait for one who goes alone.
      getOff(call, name, admission);
      return alone();
    }
    if (boarded.role === "served") return (await answerHit(call, asked, boarded.entry, admission)) ?? alone();
    if (boarded.role === "lead") return marked(call, await lead(call, asked, admission, name), "MISS");
    const joined = await join(call, asked, admission, name, boarded.leader);
    if (joined) return marked(call, joined, "JOINED");
  }
  if (Date.now() - begunAt > longestAloneMs) throw leadersLost;
  return alone();
}

const leadersLost = new Problem("UPSTREAM_TIMEOUT", "The model service did not answer in time.");

function getOff(call: JobCall, name: string, admission: string): void {
  call.waitUntil(call.images.flights.unboard(name, admission).catch(logUnshared));
}

async function lead(call: JobCall, asked: Asked, admission: string, name: string): Promise<Response> {
  const led = await outlive(call, takeOff(call, asked, admission, name));
  if ("replay" in led) return replay(call, asked, led.replay);
  const response = await follow(call, asked, admission, led.done);
  setQuota(response.headers, led.quota);
  return response;
}

/** To know the upstream's id early, a sync job is relayed as an async one and waited for. */
async function takeOff(call: JobCall, asked: Asked, admission: string, name: string) {
  const { flights } = call.images;
  /** What the upstream said is said to all; who may not lead lets another lead. */
  let isEverybodys = false;
  try {
    const submission = await submissionOf(call, asked, admission);
    const led = await metered(call, asRun(await admitRequest(call, submission)), async (attempt) => {
      isEverybodys = true;
      const taken = await relay(call, { ...submission, operation: "run" }, attempt);
      if ("large" in taken) throw namesNoJob;
      return taken;
    });
    if ("replay" in led) await flights.ground(name, admission, undefined).catch(logUnshared);
    else await tellFlight(call, asked, admission, name, led.done);
    return led;
  } catch (error) {
    const { code, message: detail } = error instanceof Problem ? error : unknownFailure;
    await flights.ground(name, admission, isEverybodys ? { code, detail } : undefined).catch(logUnshared);
    throw error;
  }
}

async function tellFlight(call: JobCall, { envelope }: Asked, admission: string, name: string, taken: TakenJob) {
  const { flights } = call.images;
  const { ref } = taken;
  bindTaken(call, admission, taken);
  await Promise.all([
    flights.takeOff(name, admission, ref, JSON.stringify({ input: envelope.input })),
    flights.expect(name, { ...jobKey(call), ref }, admission, "lead"),
  ]).catch(logUnshared);
}

const unknownFailure = new Problem("UPSTREAM_FAILED", "The model service failed.");

/** The upstream keeps an async job's result longer. */
function asRun<T extends { readonly retentionMs: number }>(request: T): T {
  return { ...request, retentionMs: limits.runRetentionMs };
}

/** Undefined where the flight was given up before it took off, or its leader was lost. */
async function join(
  call: JobCall,
  asked: Asked,
  admission: string,
  name: string,
  leader: string,
): Promise<Response | undefined> {
  const joined = await outlive(call, ride(call, asked, admission, name, leader));
  if ("replay" in joined) return replay(call, asked, joined.replay);
  if (!joined.done) return undefined;
  const response = await follow(call, asked, admission, joined.done);
  setQuota(response.headers, joined.quota);
  return response;
}

async function ride(call: JobCall, asked: Asked, admission: string, name: string, leader: string) {
  const { flights } = call.images;
  try {
    const request = asRun(await admitRequest(call, await submissionOf(call, asked, admission)));
    const rode = await metered(call, { ...request, reserveMicroUsd: 0, joined: true }, async () => {
      const ref = await flights.awaitRef(name, leader);
      return ref === undefined ? undefined : { job: { status: "IN_QUEUE" }, ref, askedAt: Date.now() };
    });
    if ("replay" in rode || !rode.done) getOff(call, name, admission);
    else {
      bindTaken(call, admission, rode.done);
      const { ref } = rode.done;
      await flights.expect(name, { ...jobKey(call), ref }, admission, "joined").catch(logUnshared);
    }
    return rode;
  } catch (error) {
    getOff(call, name, admission);
    throw error;
  }
}

/** A run is answered at once, a runsync once its job ended or its wait is over. */
async function follow(
  call: JobCall,
  { operation, waitMs }: Asked,
  admission: string,
  { job, ref, askedAt }: { job: UpstreamJob; ref: string; askedAt: number },
): Promise<Response> {
  const handle = handlesOf(call.config).mint(jobKey(call), { ref, admission });
  if (operation === "run") return answerJob(call, job, { ref, admission }, handle, { askedAt });
  const { signal } = call.request;
  const how = { operation: "status-sync", query: `wait=${waitMs}`, waitMs, signal } as const;
  return followJob(call, { ref, admission }, handle, how);
}

function logUnshared(error: unknown): void {
  console.warn(JSON.stringify({ flight: "not shared", error: nameOfFault(error) }));
}
