// The answer that the Idempotency-Key of an OpenAI call stands for once it was given: kept for a day, as it was.
import { limits } from "../../contract/limits.ts";
import { Problem } from "../../errors.ts";
import { admittedAt } from "../admission.ts";

export interface GivenAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

/** A larger answer is not kept. */
export const keptBytes = 1024 * 1024;
const keptSeconds = 24 * 60 * 60;

function answerKey(admission: string): string {
  return `answer/${admission}`;
}

/** Nothing stands in it where there was an answer that is not kept. */
type Kept = Partial<Omit<GivenAnswer, "bytes">>;

/**
 * Before the meter is told of the end: where it says that the call is over, the answer is there. Without one, or with a large
 * one, only that is kept. Comfort, as all of KV is: a key whose answer was lost still starts nothing anew.
 */
export async function keepAnswer(
  answers: KVNamespace,
  admission: string,
  answer: GivenAnswer | undefined,
): Promise<void> {
  const kept = answer && answer.bytes.byteLength <= keptBytes ? answer : undefined;
  const metadata: Kept = kept ? { status: kept.status, contentType: kept.contentType } : {};
  try {
    await answers.put(answerKey(admission), kept?.bytes ?? "", { expirationTtl: keptSeconds, metadata });
  } catch {
    console.warn(JSON.stringify({ binding: "IMAGES", problem: "an answer was not kept", admission }));
  }
}

/** The same call once more: what the first one was answered. */
export async function repeatAnswer(answers: KVNamespace, admission: string, now: number): Promise<Response> {
  const { value, metadata } = await answers.getWithMetadata<Kept>(answerKey(admission), "stream");
  const { status, contentType } = metadata ?? {};
  if (status !== undefined && contentType !== undefined) {
    return new Response(value, { status, headers: { "Content-Type": contentType } });
  }
  await value?.cancel();
  if (metadata === null && now < admittedAt(admission) + longestMs) {
    throw new Problem("IN_PROGRESS", "The answer to this Idempotency-Key is not here yet.", { "Retry-After": "1" });
  }
  throw new Problem("ANSWER_NOT_KEPT", "This Idempotency-Key was used, and its answer was not kept.", notAgain);
}

/** KV may take a minute to show elsewhere what was written. */
const spreadMs = 60_000;
const longestMs = limits.waitMs.max + spreadMs;

/** OpenAI's clients repeat a call that was answered with 409, unless they are told not to. */
const notAgain = { "X-Should-Retry": "false" };
