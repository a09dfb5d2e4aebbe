// The client of the upstream: adds the server's key, builds the URL of checked segments, never follows a redirect.
import { Problem } from "../errors.ts";
import type { Send } from "../wire/webhook.ts";

export interface Upstream {
  /** Up to and with the interface's version: `https://api.example.com/v2`. */
  readonly base: string;
  readonly key: string;
  readonly send: Send;
  readonly breaker: Breaker;
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

export const usualTimes: Times = { headMs: 10_000, bodyMs: 15_000, streamMs: 300_000, retryMs: 2_000 };

export interface Call {
  readonly method: "GET" | "POST";
  /** Names that were matched strictly: nothing in them needs escaping. */
  readonly segments: readonly string[];
  readonly query?: string;
  readonly body?: BodyInit;
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

const firstPauseMs = 100;
/** What a proxy in front of the upstream says when it could not connect, beside the upstream's own refusals. */
const notTaken: ReadonlySet<number> = new Set([429, 503, 521, 523]);

/** Fails fast while the upstream is down, with one trial call at a time. Kept by an isolate. */
export class Breaker {
  #failures = 0;
  #openUntil = 0;

  isOpen(now: number): boolean {
    if (now < this.#openUntil) return true;
    if (this.#failures >= failuresToOpen) this.#openUntil = now + openMs;
    return false;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#openUntil = 0;
  }

  failed(now: number): void {
    this.#failures += 1;
    if (this.#failures >= failuresToOpen) this.#openUntil = now + openMs;
  }
}
const failuresToOpen = 20;
const openMs = 5_000;

export async function callUpstream(upstream: Upstream, call: Call): Promise<Response> {
  if (upstream.breaker.isOpen(Date.now())) {
    throw new Problem("UPSTREAM_DOWN", "The model service cannot be reached at the moment.", { "Retry-After": "5" });
  }
  const deadline = Date.now() + upstream.times.retryMs;
  for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
    const outcome = await attempt(upstream, call);
    const waitMs = pauseBefore(outcome, call, pauseMs);
    if (waitMs === undefined || Date.now() + waitMs > deadline) return conclude(outcome);
    if (outcome instanceof Response) await outcome.body?.cancel();
    await scheduler.wait(waitMs);
  }
}

type Outcome = Response | Problem;

/** How long to pause before another try, with full jitter; undefined where there is none. */
function pauseBefore(outcome: Outcome, call: Call, pauseMs: number): number | undefined {
  const whole = call.body === undefined || typeof call.body === "string" || call.body instanceof Uint8Array;
  if (!whole || call.signal?.aborted) return undefined;
  if (outcome instanceof Problem)
    return call.repeatable && outcome.code === "UPSTREAM_UNREACHABLE" ? jitter(pauseMs) : undefined;
  if (!notTaken.has(outcome.status)) return undefined;
  return Math.max(1000 * (retryAfterSeconds(outcome.headers, Date.now()) ?? 0), jitter(pauseMs));
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

function conclude(outcome: Outcome): Response {
  if (outcome instanceof Problem) throw outcome;
  return outcome;
}

async function attempt({ base, key, send, breaker, times }: Upstream, call: Call): Promise<Outcome> {
  const abort = new AbortController();
  const headMs = (call.waitMs ?? 0) + times.headMs;
  const timer = startTimer(() => abort.abort(timedOut), call.sent ? times.streamMs : headMs);
  const sent = () => timer.restart(headMs);
  call.sent?.then(sent, () => {});
  const leave = () => abort.abort();
  call.signal?.addEventListener("abort", leave);
  if (call.signal?.aborted) leave();
  try {
    const response = await send(requestOf(base, key, call, abort.signal));
    if (isDown(response.status)) breaker.failed(Date.now());
    else breaker.succeeded();
    return response;
  } catch {
    const late = abort.signal.reason === timedOut;
    // Neither a caller that left nor a body that broke off says anything about the upstream.
    if (late || !(call.signal?.aborted || call.sent)) breaker.failed(Date.now());
    if (late) return new Problem("UPSTREAM_TIMEOUT", "The model service did not answer in time.");
    return new Problem("UPSTREAM_UNREACHABLE", "The model service could not be reached.");
  } finally {
    timer.stop();
    call.signal?.removeEventListener("abort", leave);
  }
}

/** A 500 is an answer to one request; these say that nobody is there to answer any. */
function isDown(status: number): boolean {
  return status > 500 && status !== 501;
}

function startTimer(ring: () => void, ms: number) {
  let timer: ReturnType<typeof setTimeout> | null = setTimeout(ring, ms);
  return {
    stop: () => {
      clearTimeout(timer);
      timer = null;
    },
    restart: (ms: number) => {
      if (timer === null) return;
      clearTimeout(timer);
      timer = setTimeout(ring, ms);
    },
  };
}

const timedOut = new Error("no answer in time");

/** The caller's headers stay here: what goes out is named in this place alone. */
function requestOf(base: string, key: string, call: Call, signal: AbortSignal): Request {
  const headers: Record<string, string> = { Authorization: `Bearer ${key}`, Accept: call.accept ?? "application/json" };
  if (call.body !== undefined) headers["Content-Type"] = "application/json";
  const url = `${base}/${call.segments.join("/")}${call.query ? `?${call.query}` : ""}`;
  const init: RequestInit = { method: call.method, headers, redirect: "manual", signal };
  if (call.body !== undefined) init.body = call.body;
  return new Request(url, init);
}
