// The answer that the Idempotency-Key of an OpenAI call stands for once it was given: kept for a day, as it was.
import { Problem } from "../../errors.ts";

export interface GivenAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

/** A larger answer is not kept. */
export const keptBytes = 1024 * 1024;
const keptSeconds = 24 * 60 * 60;

/** An OpenAI call has no id upstream. What stands in its place in the meter's row says that it is over, and whether its answer is kept. */
const marks = { kept: "answer-kept-", gone: "answer-gone-" } as const;

export function isAnswerMark(ref: string): boolean {
  return ref.startsWith(marks.kept) || ref.startsWith(marks.gone);
}

function answerKey(admission: string): string {
  return `answer/${admission}`;
}

/** Answers with the mark for the meter's row: kept first, then told, so that nobody looks for it too early. */
export async function keepAnswer(
  answers: KVNamespace,
  admission: string,
  answer: GivenAnswer | undefined,
): Promise<string> {
  const gone = `${marks.gone}${admission}`;
  if (!answer || answer.bytes.byteLength > keptBytes) return gone;
  const { status, contentType } = answer;
  try {
    await answers.put(answerKey(admission), answer.bytes, {
      expirationTtl: keptSeconds,
      metadata: { status, contentType },
    });
    return `${marks.kept}${admission}`;
  } catch {
    console.warn(JSON.stringify({ binding: "IMAGES", problem: "an answer was not kept", admission }));
    return gone;
  }
}

interface Kept {
  readonly status: number;
  readonly contentType: string;
}

/** The same call once more: what the first one was answered. */
export async function repeatAnswer(
  answers: KVNamespace,
  { admission, ref }: { readonly admission: string; readonly ref: string },
): Promise<Response> {
  if (ref.startsWith(marks.gone)) {
    throw new Problem("ANSWER_NOT_KEPT", "This Idempotency-Key was used, and its answer was not kept.", notAgain);
  }
  const { value, metadata } = await answers.getWithMetadata<Kept>(answerKey(admission), "stream");
  if (!value || !metadata) {
    throw new Problem("IN_PROGRESS", "The answer to this Idempotency-Key is not here yet.", { "Retry-After": "1" });
  }
  return new Response(value, { status: metadata.status, headers: { "Content-Type": metadata.contentType } });
}

/** OpenAI's clients repeat a call that was answered with 409, unless they are told not to. */
const notAgain = { "X-Should-Retry": "false" };
