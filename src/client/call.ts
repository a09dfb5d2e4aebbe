// One call of the gateway: with the caller's token, again where its answer was lost, refused in the gateway's own words.
import { abortError, refusalOf, SluiceError } from "./errors.ts";
import type { Tokens } from "./token.ts";

/** What is asked of `fetch`: nothing that only some of its worlds have. */
export interface Sent {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string | Blob | null;
  readonly signal?: AbortSignal | null;
  readonly keepalive?: boolean;
}

export type Fetch = (url: string, init: Sent) => Promise<Response>;

/** What an app may say of a call. */
export interface CallOptions {
  readonly method?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: ConstructorParameters<typeof Headers>[0];
  readonly signal?: AbortSignal | undefined;
}

/** Whether it may be called again where its answer was lost: `keyed` by its `Idempotency-Key`, or only `once`. */
type Starts = "keyed" | "once";

export interface InternalCall extends CallOptions {
  /** It may start something; else it is a question, or does the same however often it is called. */
  readonly starts?: Starts | undefined;
  readonly tries?: number;
  /** Its answer may take as long as a job does. */
  readonly isHeld?: boolean;
  /** It is to outlive the page. */
  readonly keepalive?: boolean;
  /** What answers it with a page is not the gateway. */
  readonly isJson?: boolean;
}

export type Call = (path: string, request?: InternalCall) => Promise<Response>;

const maxTries = 5;
const backOff = { firstMs: 500, maxMs: 8_000 };
/** The caller is told of a longer wait. */
const longestWaitMs = 30_000;
/** A body of 10 MB may be on its way for most of it. */
const answersWithinMs = 120_000;

/** An app's own call: it may last as long as the app wants, and what it starts is started once. */
export function appsCall(call: Call): (path: string, options?: CallOptions) => Promise<Response> {
  return async (path, options = {}) => {
    const start = new Headers(options.headers).has("Idempotency-Key") ? "keyed" : "once";
    return call(path, {
      ...options,
      starts: /^(POST|PATCH)$/i.test(options.method ?? "") ? start : undefined,
      isHeld: true,
    });
  };
}

export function callerOf(url: string, tokens: Tokens, fetch: Fetch): Call {
  const send = async (path: string, body: string | undefined, token: string, request: InternalCall) => {
    const { method = "GET", headers, signal = null, keepalive = false, isHeld, isJson } = request;
    const sent = new Headers(headers);
    if (token) sent.set("Authorization", `Bearer ${token}`);
    if (body) sent.set("Content-Type", "application/json");
    const answer = await fetch(url + path, {
      method: method.toUpperCase(),
      headers: Object.fromEntries(sent),
      body: body ?? null,
      signal: isHeld ? signal : either(AbortSignal.timeout(answersWithinMs), signal),
      keepalive,
    });
    if (isJson && answer.ok) await answer.clone().json();
    return answer;
  };

  const answered = async (path: string, request: InternalCall) => {
    const { signal, starts, tries = maxTries } = request;
    // What is no JSON is the caller's fault, and none of the network's.
    const body = JSON.stringify(request.body);
    let isRenewed = false;
    for (let tried = 1; ; tried++) {
      const token = await tokens.current();
      if (signal?.aborted) throw abortError(signal);
      const answer: Response | SluiceError = await send(path, body, token, request).catch(
        (cause) => new SluiceError("NETWORK", "The gateway cannot be reached.", { cause }),
      );
      if (answer instanceof Response && answer.ok) return answer;
      const error = answer instanceof Response ? await refusalOf(answer) : answer;
      if (error.status === 401 && !isRenewed && (await tokens.renewed(token)) !== token) {
        isRenewed = true;
        continue;
      }
      // It may be a date, which no gateway of ours sends.
      const saidMs = Number(error.retryAfter) * 1000;
      const waitMs = saidMs > 0 ? saidMs : pauseMs(tried);
      if (tried >= tries || waitMs > longestWaitMs || !mayRepeat(error, starts)) throw error;
      await pause(waitMs, signal);
    }
  };

  // Whatever it waits for, its own token too.
  return (path, request = {}) => untilAborted(answered(path, request), request.signal);
}

/** What it comes to, unless the caller aborts before: then `leave` sees to the rest, which nobody waits for. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined, leave?: () => void): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = () => {
      leave?.();
      reject(abortError(signal));
    };
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

function mayRepeat({ code, status = 0 }: SluiceError, starts: Starts | undefined): boolean {
  if (starts === "once") return false;
  if (code === "NETWORK") return status === 0 || status >= 500;
  return starts ? status === 503 || code === "IN_PROGRESS" : status === 429 || status >= 502;
}

export function either(signal: AbortSignal, other: AbortSignal | null | undefined): AbortSignal {
  return other ? AbortSignal.any([signal, other]) : signal;
}

/** Longer each time, and not at the same moment as everybody else. */
export function pauseMs(tried: number): number {
  return Math.min(backOff.firstMs * 2 ** (tried - 1), backOff.maxMs) * (0.5 + Math.random() / 2);
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  let timer!: ReturnType<typeof setTimeout>;
  const passed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return untilAborted(passed, signal, () => clearTimeout(timer));
}
