// The answer that the Idempotency-Key of an OpenAI call stands for once it was given: kept for a day, as it was.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { answersWithinMs } from "../../durable/remote.ts";
import { Problem } from "../../errors.ts";
import { inTime } from "../../isolate/in-time.ts";
import type { Replay } from "../quota/metering.ts";
import { admittedAt } from "./admission-id.ts";

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

/** Empty metadata: there was an answer, and it is not kept. */
const keptSchema = z.object({
  status: z.int().min(200).max(599),
  contentType: z.enum(["application/json", "text/event-stream"]),
  /** In bytes; absent in entries of an older version. */
  size: z.int().optional(),
});
type Kept = z.infer<typeof keptSchema>;

/**
 * Called before the meter is told of the end, so that an answer is there once the meter says that the call is over. For
 * a missing or too large answer only an empty entry is kept. If KV fails, or takes too long, the answer is lost, but its
 * idempotency key still starts no second call.
 */
export async function keepAnswer(
  answers: KVNamespace,
  admission: string,
  answer: GivenAnswer | undefined,
): Promise<void> {
  const kept = answer && answer.bytes.byteLength <= keptBytes ? answer : undefined;
  const { status, contentType, bytes } = kept ?? {};
  const metadata = { status, contentType, size: bytes?.byteLength };
  try {
    const put = answers.put(answerKey(admission), bytes ?? "", { expirationTtl: keptSeconds, metadata });
    await inTime(answersWithinMs.comfort, put);
  } catch {
    console.warn(JSON.stringify({ binding: "IMAGES", problem: "an answer was not kept", admission }));
  }
}

/** The same call once more: what the first one was answered. */
export async function repeatAnswer(
  answers: KVNamespace,
  { admission, endedAt = admittedAt(admission) + limits.waitMs.max }: Pick<Replay, "admission" | "endedAt">,
  now: number,
): Promise<Response> {
  const reading = answers.getWithMetadata(answerKey(admission), "arrayBuffer");
  const { value, metadata } = await inTime(answersWithinMs.comfort, reading).catch(() => {
    throw notRead;
  });
  const { data: kept } = keptSchema.safeParse(metadata);
  if (kept && value && isWhole(value, kept)) {
    return new Response(value, { status: kept.status, headers: { "Content-Type": kept.contentType } });
  }
  if (metadata === null && now < endedAt + spreadMs) {
    throw new Problem("IN_PROGRESS", "The answer to this Idempotency-Key is not here yet.", { "Retry-After": "1" });
  }
  throw new Problem("ANSWER_NOT_KEPT", "This Idempotency-Key was used, and its answer was not kept.", notAgain);
}

function isWhole({ byteLength }: ArrayBuffer, { size }: Kept): boolean {
  return size === undefined ? byteLength > 0 : byteLength === size;
}

const notRead = new Problem("UNAVAILABLE", "The answer cannot be read at the moment.", { "Retry-After": "1" });

/** KV may take a minute to show elsewhere what was written. */
const spreadMs = 60_000;

/** OpenAI's clients repeat a call that was answered with 409, unless they are told not to. */
const notAgain = { "X-Should-Retry": "false" };
