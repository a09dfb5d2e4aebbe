// The client of the upstream: adds the server's key, builds the URL of checked segments, never follows a redirect.
import { Problem } from "../errors.ts";
import type { Send } from "../wire/webhook.ts";

export interface Upstream {
  /** Up to and with the interface's version: `https://api.example.com/v2`. */
  readonly base: string;
  readonly key: string;
  readonly send: Send;
  readonly breaker: Breaker;
}

export interface Call {
  readonly method: "GET" | "POST";
  /** Names that were matched strictly: nothing in them needs escaping. */
  readonly segments: readonly string[];
  readonly query?: string;
  readonly body?: BodyInit;
  /** How long the answer's head may take beyond what the upstream is asked to wait. */
  readonly waitMs?: number;
  /** The same call twice is the same as once. */
  readonly repeatable: boolean;
  readonly accept?: string;
  /** The caller's own: a held or streamed call ends when the caller leaves. */
  readonly signal?: AbortSignal;
}

const headTimeoutMs = 10_000;
const retryWithinMs = 2_000;
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
  const deadline = Date.now() + retryWithinMs;
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
  const asked = Number(outcome.headers.get("Retry-After") ?? 0) * 1000;
  return Number.isFinite(asked) ? Math.max(asked, jitter(pauseMs)) : undefined;
}

function jitter(pauseMs: number): number {
  return Math.random() * pauseMs;
}

function conclude(outcome: Outcome): Response {
  if (outcome instanceof Problem) throw outcome;
  return outcome;
}

async function attempt({ base, key, send, breaker }: Upstream, call: Call): Promise<Outcome> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(timedOut), (call.waitMs ?? 0) + headTimeoutMs);
  const leave = () => abort.abort();
  call.signal?.addEventListener("abort", leave);
  try {
    const response = await send(requestOf(base, key, call, abort.signal));
    if (response.status >= 500) breaker.failed(Date.now());
    else breaker.succeeded();
    return response;
  } catch {
    breaker.failed(Date.now());
    if (abort.signal.reason === timedOut)
      return new Problem("UPSTREAM_TIMEOUT", "The model service did not answer in time.");
    return new Problem("UPSTREAM_UNREACHABLE", "The model service could not be reached.");
  } finally {
    clearTimeout(timer);
    call.signal?.removeEventListener("abort", leave);
  }
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
