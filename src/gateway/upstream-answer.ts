// What the upstream answers, checked: whatever is not its JSON becomes a code that tells which, and none of its text.
import * as z from "zod";
import { type ErrorCode, Problem } from "../errors.ts";
import { readBounded } from "../wire/small-body.ts";

/** More than any whole answer may be: outputs are as large as a sync request, and escapes may double them. */
const maxAnswerBytes = 48 * 1024 * 1024;
const maxDetailLength = 500;
const bodyTimeoutMs = 30_000;

/** A job as the upstream tells of it; unknown keys go through. */
const answerSchema = z.looseObject({
  id: z.string().optional(),
  status: z.string().max(32),
  delayTime: z.number().optional(),
  executionTime: z.number().optional(),
});
export type UpstreamJob = z.infer<typeof answerSchema> & { output?: unknown; error?: unknown };

export async function readJob(response: Response, key: string): Promise<UpstreamJob> {
  const checked = answerSchema.safeParse(await readJson(response, key));
  if (!checked.success) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not a job.");
  return checked.data;
}

/** The JSON of a good answer; of any other the problem that the caller sees. */
export async function readJson(response: Response, key: string): Promise<unknown> {
  if (response.status >= 300 && response.status < 400) throw await dropped(response, "UPSTREAM_REDIRECT");
  if (response.status === 401 || response.status === 403) throw await refused(response);
  const json = /^application\/([\w.+-]+\+)?json\b/i.test(response.headers.get("Content-Type") ?? "");
  if (!json) throw await dropped(response, response.ok ? "UPSTREAM_BAD_TYPE" : codeOf(response.status));
  const value = parse(await readBytes(response));
  if (response.ok) return value;
  throw new Problem(codeOf(response.status), detailOf(value, key), retryAfterOf(response));
}

const meanings = {
  UPSTREAM_REDIRECT: "The model service answered with a redirect.",
  UPSTREAM_BAD_TYPE: "The model service's answer is not JSON.",
  UPSTREAM_FAILED: "The model service failed.",
  UPSTREAM_BUSY: "The model service is busy.",
  UPSTREAM_INVALID: "The model service refused the request.",
  JOB_NOT_FOUND: "job not found",
} as const satisfies Partial<Record<ErrorCode, string>>;
type Meaning = keyof typeof meanings;

function codeOf(status: number): Meaning {
  if (status === 404) return "JOB_NOT_FOUND";
  if (status === 429 || status === 503) return "UPSTREAM_BUSY";
  return status < 500 ? "UPSTREAM_INVALID" : "UPSTREAM_FAILED";
}

async function dropped(response: Response, code: Meaning): Promise<Problem> {
  await response.body?.cancel().catch(() => {});
  return new Problem(code, meanings[code], retryAfterOf(response));
}

/** Our key is wrong, which is our fault: the log says so, the caller learns no more than that. */
async function refused(response: Response): Promise<Problem> {
  await response.body?.cancel().catch(() => {});
  console.error(JSON.stringify({ upstream: "refused our key", status: response.status, setting: "UPSTREAM_API_KEY" }));
  return new Problem("UPSTREAM_REFUSED", "The model service refused the gateway.");
}

function retryAfterOf(response: Response): Record<string, string> {
  const seconds = response.headers.get("Retry-After") ?? "";
  return /^\d{1,5}$/.test(seconds) ? { "Retry-After": seconds } : {};
}

async function readBytes(response: Response): Promise<Uint8Array> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Problem("UPSTREAM_TIMEOUT", "The answer did not end in time.")),
    bodyTimeoutMs,
  );
  try {
    const bytes = await Promise.race([readBounded(response.body, maxAnswerBytes), late.promise]);
    if (bytes) return bytes;
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem("UPSTREAM_TRUNCATED", "The model service's answer ended in the middle.");
  } finally {
    clearTimeout(timer);
  }
  throw new Problem("UPSTREAM_TOO_LARGE", "The model service's answer is too large.");
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    throw new Problem("UPSTREAM_BAD_JSON", "The model service's answer is not valid JSON.");
  }
}

/** The text of the upstream's JSON error, wherever it stands; never one that holds our key. */
function detailOf(value: unknown, key: string): string {
  const body = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  const nested = typeof body["error"] === "object" && body["error"] !== null ? body["error"] : {};
  const candidates = [
    body["error"],
    body["detail"],
    body["message"],
    "message" in nested && nested.message,
    body["title"],
  ];
  const text = candidates.find((candidate) => typeof candidate === "string" && candidate !== "");
  if (typeof text !== "string" || text.includes(key)) return "The model service refused the request.";
  return text.slice(0, maxDetailLength);
}
