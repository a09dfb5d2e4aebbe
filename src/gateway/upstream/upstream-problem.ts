// What the caller is told after an error of the upstream. The upstream's own text is passed on only if it is a JSON
// error.
import { type ErrorCode, Problem } from "../../errors.ts";
import { logRefusedKey, refusalOf } from "./own-keys.ts";
import { type Answered, dropBody, retryAfterSeconds } from "./upstream.ts";
import { isJson, parseAnswer, readAnswer } from "./upstream-body.ts";

const errorBytes = 64 * 1024;
const maxDetailLength = 500;
/** A client that is told to come back is told when. */
const defaultRetrySeconds = 1;

const meanings = {
  UPSTREAM_REDIRECT: "The model service answered with a redirect.",
  UPSTREAM_BAD_ANSWER: "The model service's answer is none.",
  UPSTREAM_BAD_TYPE: "The model service's answer is not JSON.",
  UPSTREAM_FAILED: "The model service failed.",
  UPSTREAM_BUSY: "The model service is busy.",
  UPSTREAM_INVALID: "The model service refused the request.",
  UPSTREAM_REFUSED: "The model service refused the gateway.",
  JOB_NOT_FOUND: "job not found",
} as const satisfies Partial<Record<ErrorCode, string>>;
type Meaning = keyof typeof meanings;

export async function problemOf(answered: Answered): Promise<Problem> {
  const { response } = answered;
  const { status } = response;
  if (status < 200) return dropped(answered, "UPSTREAM_BAD_ANSWER");
  if (status < 400) return dropped(answered, "UPSTREAM_REDIRECT");
  if (refusalOf(status) !== undefined) return refused(answered);
  const code = codeOf(status);
  const saysLittle = code === "UPSTREAM_INVALID" || code === "JOB_NOT_FOUND" ? "UPSTREAM_BAD_TYPE" : code;
  if (!isJson(response)) return dropped(answered, saysLittle);
  const { parsed, detail } = await readError(answered);
  if (parsed) return new Problem(code, detail ?? meanings[code], retryAfter(response, code));
  return new Problem(
    saysLittle === code ? code : "UPSTREAM_BAD_JSON",
    meanings[saysLittle],
    retryAfter(response, code),
  );
}

async function readError(answered: Answered) {
  const begun = await readAnswer(answered, { headBytes: errorBytes });
  const parsed = "large" in begun ? undefined : parseAnswer(begun, answered.upstream.keySearch);
  if ("large" in begun) begun.large.reader.cancel("too large").catch(() => {});
  return { parsed, detail: parsed && !parsed.holdsKey ? detailOf(parsed.value) : undefined };
}

function codeOf(status: number): Meaning {
  if (status === 404) return "JOB_NOT_FOUND";
  if (status === 429 || status === 503) return "UPSTREAM_BUSY";
  return status < 500 ? "UPSTREAM_INVALID" : "UPSTREAM_FAILED";
}

/** None of its text is for the caller. */
export async function dropped(answered: Answered, code: Meaning): Promise<Problem> {
  await dropBody(answered);
  return new Problem(code, meanings[code], retryAfter(answered.response, code));
}

const noCredits = "the account has no credits left";

/** Our key is wrong, or our account has no credits: only the log says which. */
async function refused(answered: Answered): Promise<Problem> {
  const { response } = answered;
  const read = isJson(response) ? await readError(answered).catch(() => undefined) : undefined;
  // Its own words may be a user's, or our key's.
  logRefusedKey(response.status, read?.detail === noCredits ? noCredits : undefined);
  return dropped(answered, "UPSTREAM_REFUSED");
}

function retryAfter({ headers }: Response, code: Meaning): Record<string, string> {
  const busy = code === "UPSTREAM_BUSY" ? defaultRetrySeconds : undefined;
  const seconds = retryAfterSeconds(headers, Date.now()) ?? busy;
  return seconds === undefined ? {} : { "Retry-After": String(seconds) };
}

/** An error may quote the request with the address of its notices, which is the upstream's to know alone. */
const namesHook = /\/hooks\//i;

/** The text of the upstream's JSON error, wherever it stands. */
function detailOf(value: unknown): string | undefined {
  const body = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  const nested = typeof body["error"] === "object" && body["error"] !== null ? body["error"] : {};
  const candidates = [
    ...[body["error"], body["detail"], body["message"]],
    ...["message" in nested && nested.message, body["title"]],
  ];
  const text = candidates.find((candidate) => typeof candidate === "string" && candidate !== "");
  return typeof text === "string" && !namesHook.test(text) ? text.slice(0, maxDetailLength) : undefined;
}
