// What the upstream answers, checked: whatever is not its JSON becomes a code that tells which, and none of its text.
import * as z from "zod";
import { Problem } from "../errors.ts";
import type { ByteSource } from "../wire/body.ts";
import { type From, isJson, parseAnswer, readBytes } from "./upstream-body.ts";
import { dropped, problemOf } from "./upstream-problem.ts";

/** What is parsed, and written anew for its owner; a larger answer streams. */
const headBytes = 256 * 1024;
/** What is parsed where nothing can stream: events, notices, lists of chunks. */
const wholeAnswerBytes = 20 * 1024 * 1024;
/** More than any answer may be: outputs are as large as a sync request, and escapes may double them. */
export const answerLimitBytes = 48 * 1024 * 1024;

/** A job as the upstream tells of it; unknown keys go through. */
const answerSchema = z.looseObject({
  id: z.string().optional(),
  status: z.string().max(32),
  delayTime: z.number().optional(),
  executionTime: z.number().optional(),
});
export type UpstreamJob = z.infer<typeof answerSchema> & { output?: unknown; error?: unknown };

/** A good answer: parsed where it is small, and begun where it is not. */
export type OpenedJob = { readonly whole: UpstreamJob } | { readonly large: ByteSource };

export async function openJob(response: Response, from: From, wholeBytes = headBytes): Promise<OpenedJob> {
  const opened = await open(response, from, wholeBytes);
  return "large" in opened ? opened : { whole: asJob(opened.value) };
}

export async function readJob(response: Response, from: From): Promise<UpstreamJob> {
  return asJob(await readJson(response, from));
}

/** For answers that are objects, whatever is in them. */
export async function readObject(response: Response, from: From): Promise<Record<string, unknown>> {
  return asObject(await readJson(response, from));
}

export type OpenedObject = { readonly whole: Record<string, unknown> } | { readonly large: ByteSource };

export async function openObject(response: Response, from: From): Promise<OpenedObject> {
  const opened = await open(response, from, headBytes);
  return "large" in opened ? opened : { whole: asObject(opened.value) };
}

/** Whatever JSON it is. */
export async function readJson(response: Response, from: From): Promise<unknown> {
  const opened = await open(response, from, wholeAnswerBytes);
  if ("value" in opened) return opened.value;
  opened.large.reader.cancel("too large").catch(() => {});
  throw new Problem("UPSTREAM_TOO_LARGE", "The model service's answer is too large.");
}

function asJob(value: unknown): UpstreamJob {
  const checked = answerSchema.safeParse(value);
  if (!checked.success) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not a job.");
  return checked.data;
}

function asObject(value: unknown): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not an object.");
}

type Opened = { readonly value: unknown } | { readonly large: ByteSource };

/** The JSON of a good answer; of any other the problem that the caller sees is thrown. */
async function open(response: Response, from: From, wholeBytes: number): Promise<Opened> {
  if (!response.ok) throw await problemOf(response, from);
  if (!isJson(response)) throw await dropped(response, "UPSTREAM_BAD_TYPE");
  const read = await readBytes(response, from, wholeBytes);
  if ("large" in read) return read;
  const parsed = parseAnswer(read.bytes, from.key);
  if (!parsed) throw new Problem("UPSTREAM_BAD_JSON", "The model service's answer is not valid JSON.");
  if (parsed.holdsKey) throw new Problem("UPSTREAM_BAD_ANSWER", "The model service's answer is not for you.");
  return parsed;
}
