// What the client throws: the gateway's own refusals, jobs that came to no good end, and the caller's wish to stop.

/** What an error may know beside its code and its sentence. */
export interface Known {
  /** HTTP's status. */
  readonly status?: number;
  /** Seconds, where the gateway says when to come again. */
  readonly retryAfter?: number | undefined;
  /** What to quote where something went wrong; the gateway's log has it too. */
  readonly requestId?: string | undefined;
  /** Of a job that failed: the job as the gateway tells it. */
  readonly job?: unknown;
  readonly cause?: unknown;
}

/**
 * `code` is the gateway's (`INVALID_REQUEST`, `QUOTA_EXCEEDED`, …), `NETWORK` where it cannot be reached, or `JOB_FAILED`,
 * `JOB_CANCELLED`, `JOB_TIMED_OUT` where the job ended so. `message` is the gateway's own sentence, with the field.
 */
export class SluiceError extends Error {
  override readonly name = "SluiceError";
  readonly code: string;
  declare readonly status?: number;
  declare readonly retryAfter?: number | undefined;
  declare readonly requestId?: string | undefined;
  declare readonly job?: unknown;

  constructor(code: string, message: string, known: Known = {}) {
    super(message);
    this.code = code;
    Object.assign(this, known);
  }
}

/** Whatever the signal was aborted with: `name` is always `AbortError`. */
export function abortError(signal: AbortSignal): Error {
  return Object.assign(new DOMException("The call was aborted.", "AbortError"), { cause: signal.reason });
}

export function numberIn(headers: Headers, name: string): number | undefined {
  const text = headers.get(name);
  return text === null ? undefined : Number(text);
}

interface Refused {
  readonly code?: string | null;
  readonly detail?: string;
  readonly message?: string;
  readonly error?: Refused | string;
}

/** The gateway's refusal. An answer that is not its own, such as a network's error page, has the code `NETWORK`. */
export async function refusalOf(response: Response): Promise<SluiceError> {
  const { status, headers } = response;
  const body = (await response.json().catch(() => undefined)) as Refused | undefined;
  // Under `openai/` it has OpenAI's shape.
  const { code, detail, message } = body?.error instanceof Object ? body.error : (body ?? {});
  return new SluiceError(code ?? "NETWORK", detail ?? message ?? `The gateway answered ${status}.`, {
    status,
    retryAfter: numberIn(headers, "Retry-After"),
    requestId: headers.get("X-Request-Id") ?? undefined,
  });
}
