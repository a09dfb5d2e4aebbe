// One call of the gateway: with the caller's token, again where its answer was lost, refused in the gateway's own words.
import { abortError, refusalOf, SluiceError } from "./errors.ts";
import type { Tokens } from "./token.ts";

/** What is asked of `fetch`: nothing that only some of its worlds have. */
export interface Sent {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string | Blob;
  readonly signal?: AbortSignal | null;
  readonly keepalive?: boolean;
}

export type Fetch = (url: string, init: Sent) => Promise<Response>;

export interface Request {
  readonly method?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal | undefined;
  /** It starts something, and carries an `Idempotency-Key`: it is not taken back once it was sent. */
  readonly submits?: boolean;
  /** It is to outlive the page. */
  readonly keepalive?: boolean;
  /** What answers it with a page is not the gateway. */
  readonly isJson?: boolean;
  /** Its answer lasts as long as a job does. */
  readonly streams?: boolean;
  readonly tries?: number;
}

export type Call = (path: string, request?: Request) => Promise<Response>;

const usualTries = 5;
const backOff = { firstMs: 500, maxMs: 8_000 };
/** Whoever is to wait longer is told so. */
const longestWaitMs = 30_000;
const answersWithinMs = 60_000;

export function callerOf(url: string, tokens: Tokens, fetch: Fetch): Call {
  const send = async (path: string, body: string | undefined, token: string, request: Request) => {
    const { method = "GET", headers, signal, submits, keepalive = false, streams, isJson } = request;
    const answer = await fetch(url + path, {
      method,
      headers: {
        ...headers,
        ...(token && { Authorization: `Bearer ${token}` }),
        ...(body && { "Content-Type": "application/json" }),
      },
      ...(body && { body }),
      ...(!submits && { signal: streams ? (signal ?? null) : either(AbortSignal.timeout(answersWithinMs), signal) }),
      keepalive,
    });
    if (isJson && answer.ok) await answer.clone().json();
    return answer;
  };

  const answered = async (path: string, request: Request) => {
    const { signal, submits, tries = usualTries } = request;
    // What is no JSON is the caller's fault, and none of the network's.
    const body = JSON.stringify(request.body);
    let isRenewed = false;
    for (let tried = 1; ; tried++) {
      // What was sent once may have been taken, though its answer was lost: it is asked to its end.
      const mayLeave = !submits || tried === 1;
      const token = await tokens.current();
      if (mayLeave && signal?.aborted) throw abortError(signal);
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
      if (tried >= tries || waitMs > longestWaitMs || !mayRepeat(error, submits)) throw error;
      await pause(waitMs, submits ? undefined : signal);
    }
  };

  // Whatever it waits for, its own token too.
  return (path, request = {}) => untilAborted(answered(path, request), request.submits ? undefined : request.signal);
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

/** A question may be repeated; a submission where its answer was lost, or nothing was taken. Its key says that it is the same. */
function mayRepeat({ code, status = 0 }: SluiceError, submits = false): boolean {
  if (code === "NETWORK") return status === 0 || status >= 500;
  if (submits) return status === 503 || code === "IN_PROGRESS";
  return status === 429 || status >= 502;
}

export function either(signal: AbortSignal, other: AbortSignal | undefined): AbortSignal {
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
