// The one table of errors: what a code means, and how it is written for our clients and for OpenAI's.

interface Entry {
  readonly status: number;
  readonly title: string;
}

export const errors = {
  INVALID_REQUEST: { status: 400, title: "Bad request" },
  INVALID_JSON: { status: 400, title: "Bad request" },
  NOT_RETRYABLE: { status: 400, title: "Bad request" },
  UPSTREAM_INVALID: { status: 400, title: "Bad request" },
  NO_WORKERS: { status: 400, title: "Bad request" },
  WORKER_BUSY: { status: 400, title: "Bad request" },
  UNAUTHORIZED: { status: 401, title: "Unauthorized" },
  TOKEN_EXPIRED: { status: 401, title: "Unauthorized" },
  TOKEN_REVOKED: { status: 401, title: "Unauthorized" },
  NO_CREDITS: { status: 401, title: "Unauthorized" },
  TICKET_REFUSED: { status: 401, title: "Unauthorized" },
  FORBIDDEN: { status: 403, title: "Forbidden" },
  OPERATION_FORBIDDEN: { status: 403, title: "Forbidden" },
  MODEL_FORBIDDEN: { status: 403, title: "Forbidden" },
  MODEL_DISABLED: { status: 403, title: "Forbidden" },
  ANONYMOUS_OFF: { status: 403, title: "Forbidden" },
  TURNSTILE_FAILED: { status: 403, title: "Forbidden" },
  NOT_FOUND: { status: 404, title: "Not found" },
  ENDPOINT_NOT_FOUND: { status: 404, title: "Not found" },
  JOB_NOT_FOUND: { status: 404, title: "Not found" },
  MODEL_NOT_FOUND: { status: 404, title: "Not found" },
  WORKER_GONE: { status: 404, title: "Not found" },
  METHOD_NOT_ALLOWED: { status: 405, title: "Method not allowed" },
  REQUEST_TIMEOUT: { status: 408, title: "Request timeout" },
  JOB_NOT_HELD: { status: 409, title: "Conflict" },
  IN_PROGRESS: { status: 409, title: "Conflict" },
  IDEMPOTENCY_MISMATCH: { status: 409, title: "Conflict" },
  ALREADY_UPLOADED: { status: 409, title: "Conflict" },
  ANSWER_NOT_KEPT: { status: 409, title: "Conflict" },
  NAME_TAKEN: { status: 409, title: "Conflict" },
  IN_USE: { status: 409, title: "Conflict" },
  LOCKED: { status: 409, title: "Conflict" },
  WRONG_STATE: { status: 409, title: "Conflict" },
  GONE: { status: 410, title: "Gone" },
  PAYLOAD_TOO_LARGE: { status: 413, title: "Payload too large" },
  UNSUPPORTED_TYPE: { status: 415, title: "Unsupported media type" },
  RANGE_NOT_SATISFIABLE: { status: 416, title: "Range not satisfiable" },
  RATE_LIMITED: { status: 429, title: "Too many requests" },
  QUEUE_FULL: { status: 429, title: "Too many requests" },
  UPSTREAM_BUSY: { status: 429, title: "Too many requests" },
  TOO_MANY_JOBS: { status: 429, title: "Too many requests" },
  QUOTA_EXCEEDED: { status: 429, title: "Too many requests" },
  INTERNAL: { status: 500, title: "Internal server error" },
  MISCONFIGURED: { status: 500, title: "Internal server error" },
  NOT_IMPLEMENTED: { status: 501, title: "Not implemented" },
  MEDIA_REFUSED: { status: 502, title: "Bad gateway" },
  MEDIA_UNAVAILABLE: { status: 502, title: "Bad gateway" },
  MODEL_FAILED: { status: 502, title: "Bad gateway" },
  UPSTREAM_REFUSED: { status: 502, title: "Bad gateway" },
  UPSTREAM_REDIRECT: { status: 502, title: "Bad gateway" },
  UPSTREAM_BAD_TYPE: { status: 502, title: "Bad gateway" },
  UPSTREAM_BAD_JSON: { status: 502, title: "Bad gateway" },
  UPSTREAM_BAD_ANSWER: { status: 502, title: "Bad gateway" },
  UPSTREAM_TRUNCATED: { status: 502, title: "Bad gateway" },
  UPSTREAM_TOO_LARGE: { status: 502, title: "Bad gateway" },
  UPSTREAM_FAILED: { status: 502, title: "Bad gateway" },
  UPSTREAM_UNREACHABLE: { status: 502, title: "Bad gateway" },
  UNAVAILABLE: { status: 503, title: "Service unavailable" },
  IDENTITY_UNAVAILABLE: { status: 503, title: "Service unavailable" },
  TURNSTILE_UNAVAILABLE: { status: 503, title: "Service unavailable" },
  CONTROL_UNAVAILABLE: { status: 503, title: "Service unavailable" },
  METER_UNAVAILABLE: { status: 503, title: "Service unavailable" },
  UPSTREAM_DOWN: { status: 503, title: "Service unavailable" },
  UPSTREAM_TIMEOUT: { status: 504, title: "Gateway timeout" },
  WORKER_TOO_SLOW: { status: 524, title: "A timeout occurred" },
} as const satisfies Record<string, Entry>;

export type ErrorCode = keyof typeof errors;

/** A refusal on its way to the edge: thrown by a route, rendered once. Its detail is written for the caller. */
export class Problem extends Error {
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;
  /** The member of the body that is wrong, where it is one: `messages[0].role`. OpenAI's clients show it. */
  readonly param: string | null;

  constructor(
    code: ErrorCode,
    detail: string,
    headers: Readonly<Record<string, string>> = {},
    param: string | null = null,
  ) {
    super(detail);
    this.name = "Problem";
    this.code = code;
    this.headers = headers;
    this.param = param;
  }

  get status(): number {
    return errors[this.code].status;
  }
}

/** Whatever was thrown, as a problem. An unknown error tells the caller nothing of its reason. */
export function asProblem(thrown: unknown): Problem {
  return thrown instanceof Problem ? thrown : new Problem("INTERNAL", "Something went wrong on our side.");
}

/** The superset that the platform's clients read: some look for `error`, some for `detail`, some for `title`. */
export function renderProblem({ code, message }: Problem, requestId: string) {
  const { status, title } = errors[code];
  return { type: `urn:sluice:error:${code}`, title, status, detail: message, error: message, code, requestId };
}

/** What OpenAI's clients print; they show nothing of any other shape. */
export function renderOpenAiProblem({ code, message, param }: Problem, requestId: string) {
  const { status } = errors[code];
  return { error: { message, type: openAiType(status), code, param, requestId } };
}

function openAiType(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

/** The faults of a refused value, each with its path, in one line. */
export function describeFaults(
  issues: readonly { path: readonly PropertyKey[]; message: string }[],
  at = "body",
): string {
  return issues
    .slice(0, 20)
    .map(({ path, message }) => `${path.length > 0 ? path.map(String).join(".") : at}: ${message}`)
    .join("; ");
}

/** What the log may say of an error that nobody foresaw where work goes on: its message may name a value. */
export function nameOfFault(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}

const loggedFrames = 5;

/** Where it was thrown: the frames alone, since the lines before them are its message. */
export function framesOf(error: unknown): string[] | undefined {
  if (!(error instanceof Error)) return undefined;
  const lines = error.stack?.split("\n") ?? [];
  return lines.filter((line) => /^ +at /.test(line)).slice(0, loggedFrames);
}
