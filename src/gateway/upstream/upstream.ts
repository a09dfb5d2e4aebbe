// The client of the upstream: adds the server's key, builds the URL of checked segments, never follows a redirect.
import { Problem } from "../../errors.ts";
import { isRecent } from "../../isolate/recent.ts";
import type { SecretSearch } from "../../json/secret-search.ts";
import type { Breaker } from "./breaker.ts";
import { Clock } from "./clock.ts";
import { refusesKey } from "./own-keys.ts";
import { mayBeTakenLater } from "./taken.ts";

/** Like `fetch`, but it may call the embedded platform in place of a real service. */
export type CallOut = (url: string, init: RequestInit) => Promise<Response>;

export interface Upstream {
  /** Up to and with the interface's version: `https://api.example.com/v2`. */
  readonly base: string;
  /** Newest first. */
  readonly keys: readonly string[];
  /** Finds any of them in what the upstream says. */
  readonly keySearch: SecretSearch;
  readonly send: CallOut;
  readonly breaker: Breaker;
  /** Who pays for the calls: failures of one payer alone do not open the circuit. */
  readonly payer: string;
  readonly times: Times;
}

/** How long the upstream may take, in milliseconds. */
export interface Times {
  /** For the head of an answer, beyond what it is asked to wait. */
  readonly headMs: number;
  /** For the body of an answer that is read whole. */
  readonly bodyMs: number;
  /** For a body that streams, up or down: the client's pace counts too. */
  readonly streamMs: number;
  /** From a call to its last try. */
  readonly retryMs: number;
}

export const defaultTimes: Times = { headMs: 10_000, bodyMs: 15_000, streamMs: 300_000, retryMs: 2_000 };

export interface Call {
  readonly method: "GET" | "POST";
  /** Names that were matched strictly: nothing in them needs escaping. */
  readonly segments: readonly string[];
  readonly query?: string;
  readonly body?: BodyInit | undefined;
  /** Settles when a streamed body was sent: only then the answer's head is waited for. */
  readonly sent?: Promise<unknown>;
  /** How long the answer's head may take beyond what the upstream is asked to wait. */
  readonly waitMs?: number;
  /** The same call twice is the same as once. */
  readonly repeatable: boolean;
  readonly accept?: string;
  /** The caller's own: a held or streamed call ends when the caller leaves. */
  readonly signal?: AbortSignal;
}

/** An answer whose head came in time. Its clock goes on until the body was read, or is handed over. */
export interface Answered {
  readonly response: Response;
  readonly clock: Clock;
  /** Whose key no answer may say back, and whose patience counts. */
  readonly upstream: Pick<Upstream, "keySearch" | "times">;
  /** The moment before it was sent. */
  readonly askedAt: number;
}

const firstPauseMs = 100;

export async function callUpstream(upstream: Upstream, call: Call): Promise<Answered> {
  const circuit = circuitOf(upstream, call);
  if (upstream.breaker.isOpen(circuit, Date.now())) {
    // The sender of the body waits for a reader.
    if (call.body instanceof ReadableStream) call.body.cancel("nobody takes it").catch(() => {});
    throw new Problem("UPSTREAM_DOWN", "The model service cannot be reached at the moment.", { "Retry-After": "5" });
  }
  const begunAt = Date.now();
  for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
    const outcome = await attemptWithKeys(upstream, call);
    const waitMs = pauseBefore(outcome, call, pauseMs);
    if (waitMs === undefined || !isRecent(begunAt, upstream.times.retryMs - waitMs, Date.now())) {
      tellBreaker(upstream, circuit, outcome);
      return conclude(outcome);
    }
    if (!("problem" in outcome)) await dropBody(outcome);
    await scheduler.wait(waitMs);
  }
}

/** A model's own: where it fails, the others of its upstream are called as before. */
function circuitOf({ base }: Upstream, { segments: [model] }: Call): string {
  return `${base}/${model}`;
}

/** Told once a call, after its last try. */
function tellBreaker({ breaker, payer }: Upstream, circuit: string, outcome: Outcome): void {
  if ("problem" in outcome ? outcome.isItsFault : isDown(outcome.response.status)) {
    breaker.failed(circuit, payer, Date.now());
  } else if (!("problem" in outcome)) breaker.succeeded(circuit);
}

type Outcome = Answered | Unanswered;

interface Unanswered {
  readonly problem: Problem;
  /** The upstream's: neither a caller that left nor a body that broke off, or took too long, says anything about it. */
  readonly isItsFault: boolean;
}

/** While keys are changed a job may be known by the old one only. What carries no body submits nothing. */
function attemptWithKeys(upstream: Upstream, call: Call): Promise<Outcome> {
  const { keys } = upstream;
  const attempted = attempt(upstream, keys[0] ?? "", call);
  return keys.length <= 1 || call.body !== undefined ? attempted : orByOlder(keys.slice(1), upstream, call, attempted);
}

async function orByOlder(older: readonly string[], upstream: Upstream, call: Call, attempted: Promise<Outcome>) {
  let outcome = await attempted;
  for (const key of older) {
    if ("problem" in outcome || !refusesKey(outcome.response)) break;
    await dropBody(outcome);
    outcome = await attempt(upstream, key, call);
  }
  return outcome;
}

/** How long to pause before another try, with full jitter; undefined where there is none. */
function pauseBefore(outcome: Outcome, call: Call, pauseMs: number): number | undefined {
  const whole = call.body === undefined || typeof call.body === "string" || call.body instanceof Uint8Array;
  if (!whole || call.signal?.aborted) return undefined;
  if ("problem" in outcome)
    return call.repeatable && outcome.problem.code === "UPSTREAM_UNREACHABLE" ? jitter(pauseMs) : undefined;
  const { status, headers } = outcome.response;
  if (!mayBeTakenLater(status)) return undefined;
  return Math.max(1000 * (retryAfterSeconds(headers, Date.now()) ?? 0), jitter(pauseMs));
}

/** Whichever way it is written: in seconds, or as a date. */
export function retryAfterSeconds(headers: Headers, now: number): number | undefined {
  const asked = headers.get("Retry-After") ?? "";
  const seconds = /^\d{1,5}$/.test(asked) ? Number(asked) : Math.ceil((Date.parse(asked) - now) / 1000);
  return seconds >= 0 && seconds <= maxRetryAfterSeconds ? seconds : undefined;
}
const maxRetryAfterSeconds = 99_999;

function jitter(pauseMs: number): number {
  return Math.random() * pauseMs;
}

function conclude(outcome: Outcome): Answered {
  if ("problem" in outcome) throw outcome.problem;
  return outcome;
}

async function attempt(upstream: Upstream, key: string, call: Call): Promise<Outcome> {
  const { send, times } = upstream;
  const headMs = (call.waitMs ?? 0) + times.headMs;
  const clock = new Clock(call.sent ? times.streamMs : headMs);
  const askedAt = Date.now();
  let isSent = call.sent === undefined;
  call.sent?.then(
    () => {
      isSent = true;
      clock.restart(headMs);
    },
    () => {},
  );
  try {
    const response = await clock.race(send(urlOf(upstream, call), initOf(key, call, clock)));
    clock.extend(times.bodyMs);
    return { response, clock, upstream, askedAt };
  } catch {
    clock.stop();
    if (clock.isOver) return { problem: tooLate, isItsFault: isSent };
    return { problem: unreachable, isItsFault: !(call.signal?.aborted || call.sent) };
  }
}

const tooLate = new Problem("UPSTREAM_TIMEOUT", "The model service did not answer in time.");
const unreachable = new Problem("UPSTREAM_UNREACHABLE", "The model service could not be reached.");

/** None of its text is for anybody. */
export async function dropBody({ response, clock }: Answered): Promise<void> {
  clock.stop();
  await response.body?.cancel().catch(() => {});
}

/** A 500 is the answer to one request. These statuses say that the whole service is down. */
function isDown(status: number): boolean {
  return downStatuses.has(status);
}
const downStatuses: ReadonlySet<number> = new Set([502, 503, 504, 521, 522, 523]);

/** A body that streams is cut off with its call; what a caller holds open ends when the caller leaves. */
function signalOf({ signal, sent }: Call, clock: Clock): AbortSignal | undefined {
  if (signal === undefined) return sent && clock.signal;
  return AbortSignal.any([signal, clock.signal]);
}

function urlOf({ base }: Upstream, { segments, query }: Call): string {
  return `${base}/${segments.join("/")}${query ? `?${query}` : ""}`;
}

/** The caller's headers stay here: what goes out is named in this place alone. */
function initOf(key: string, call: Call, clock: Clock): RequestInit {
  const headers: Record<string, string> = { Authorization: `Bearer ${key}`, Accept: call.accept ?? "application/json" };
  const init: RequestInit = { method: call.method, headers, redirect: "manual" };
  const signal = signalOf(call, clock);
  if (signal) init.signal = signal;
  if (call.body === undefined) return init;
  headers["Content-Type"] = "application/json";
  init.body = call.body;
  return init;
}
