// An answer from the cache: no money, and no call but for a link that its owner has not had before.
import type { Reusable } from "../images/image-cache.ts";
import { payerTerms } from "./admit-request.ts";
import { formatUsd, originOf } from "./answer.ts";
import { handlesOf } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";

/** Undefined where no link can be made, which is a miss. A rule of the payer's may refuse a new one. */
export async function answerHit(
  call: JobCall,
  operation: "run" | "runsync",
  found: Reusable,
  admission: string,
): Promise<Response | undefined> {
  const { reuse } = call.images;
  const now = Date.now();
  const own = await reuse.own(found, call.principal, now, (link) => countNew(call, link));
  if (!own) return undefined;
  const job = { ref: reuse.refOf(own.key), admission };
  const id = await handlesOf(call.config).mint(jobKey(call), job);
  const answer = operation === "run" ? { status: "IN_QUEUE" } : reuse.answer(own, originOf(call));
  const ageSeconds = Math.max(0, Math.floor((now - own.media.completedAt) / 1000));
  const headers = { Age: String(ageSeconds), "X-Cost": formatUsd(0) };
  return Response.json({ id, ...answer }, { headers });
}

/** The picture was paid for by whoever asked first. */
async function countNew(call: JobCall, { key, media }: Reusable): Promise<void> {
  await call.meter.countHit({ ...payerTerms(call), row: { ...media, key, cost: 0 } });
}
