// Checks what the upstream answers. Anything but a good JSON answer becomes one of our error codes, without the
// upstream's text.

import { Problem } from "../../errors.ts";
import type { ByteSource } from "../../json/byte-reader.ts";
import { isObject } from "../../json/is-object.ts";
import type { Answered } from "./upstream.ts";
import { type HowMuch, isJson, parseAnswer, readAnswer } from "./upstream-body.ts";
import { dropped, problemOf } from "./upstream-problem.ts";

/** What is parsed, and written anew for its owner; a larger answer streams. */
const headBytes = 256 * 1024;
/** What is parsed where nothing can stream: events, notices, lists of chunks. */
const wholeAnswerBytes = 20 * 1024 * 1024;
/** More than any answer may be: outputs are as large as a sync request, and escapes may double them. */
export const answerLimitBytes = 48 * 1024 * 1024;

/** A job as the upstream tells of it; unknown keys go through. */
export interface UpstreamJob {
  readonly [name: string]: unknown;
  readonly id?: string;
  readonly status: string;
  readonly delayTime?: number;
  readonly executionTime?: number;
  readonly output?: unknown;
  readonly error?: unknown;
}

const maxStatusLength = 32;

/** Looked at on every poll: a schema would cost more than all the rest of reading. */
function isJob(value: Record<string, unknown>): value is UpstreamJob & Record<string, unknown> {
  const { id, status, delayTime, executionTime } = value;
  return (
    typeof status === "string" &&
    status.length <= maxStatusLength &&
    (id === undefined || typeof id === "string") &&
    (delayTime === undefined || typeof delayTime === "number") &&
    (executionTime === undefined || typeof executionTime === "number")
  );
}

/** A good answer: parsed where it is small, and begun where it is not. */
export type OpenedJob = { readonly whole: UpstreamJob } | { readonly large: ByteSource };

export async function openJob(answered: Answered, more?: HowMuch["more"]): Promise<OpenedJob> {
  const opened = await open(answered, { headBytes, more });
  return "large" in opened ? opened : { whole: asJob(opened.value) };
}

export async function readJob(answered: Answered): Promise<UpstreamJob> {
  return asJob(await readJson(answered));
}

/** For answers that are objects, whatever is in them. */
export async function readObject(answered: Answered): Promise<Record<string, unknown>> {
  return asObject(await readJson(answered));
}

export type OpenedObject = { readonly whole: Record<string, unknown> } | { readonly large: ByteSource };

export async function openObject(answered: Answered): Promise<OpenedObject> {
  const opened = await open(answered, { headBytes });
  return "large" in opened ? opened : { whole: asObject(opened.value) };
}

/** Whatever JSON it is. */
export async function readJson(answered: Answered): Promise<unknown> {
  const opened = await open(answered, { headBytes: wholeAnswerBytes });
  if ("value" in opened) return opened.value;
  opened.large.reader.cancel("too large").catch(() => {});
  throw new Problem("UPSTREAM_TOO_LARGE", "The model service's answer is too large.");
}

/** Undefined if the text is no job. */
export function jobIn(text: string): UpstreamJob | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && isJob(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function asJob(value: unknown): UpstreamJob {
  if (isObject(value) && isJob(value)) return "webhook" in value || "input" in value ? withoutRequest(value) : value;
  throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not a job.");
}

/**
 * Some services repeat the request in their answer. Its `webhook` is our secret hook URL, so it must not reach a user.
 */
function withoutRequest({ webhook: _, input: __, ...job }: UpstreamJob): UpstreamJob {
  return job;
}

function asObject(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value;
  throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not an object.");
}

type Opened = { readonly value: unknown } | { readonly large: ByteSource };

/** The JSON of a good answer; of any other the problem that the caller sees is thrown. */
async function open(answered: Answered, howMuch: HowMuch): Promise<Opened> {
  const { response, upstream } = answered;
  if (!response.ok) throw await problemOf(answered);
  if (!isJson(response)) throw await dropped(answered, "UPSTREAM_BAD_TYPE");
  const begun = await readAnswer(answered, howMuch);
  if ("large" in begun) return begun;
  const parsed = parseAnswer(begun, upstream.keySearch);
  if (!parsed) throw new Problem("UPSTREAM_BAD_JSON", "The model service's answer is not valid JSON.");
  if (parsed.holdsKey) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not for you.");
  return parsed;
}
