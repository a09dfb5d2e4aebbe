// An answer from the cache: no money, and no call but for a link that its owner has not had before, or for a key.
import { Problem } from "../../errors.ts";
import type { Reusable } from "../images/image-cache.ts";
import { idempotencyOf, payerTerms } from "./admit-request.ts";
import { formatUsd, originOf } from "./answer.ts";
import { handlesOf } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";
import { logJob } from "./logged-job.ts";
import { type Asked, replay } from "./submit.ts";

const notKept = new Problem("UNAVAILABLE", "The answer cannot be kept at the moment.", { "Retry-After": "1" });

/** Undefined where no link can be made, which is a miss. A rule of the payer's may refuse a new one. */
export async function answerHit(
  call: JobCall,
  asked: Asked,
  found: Reusable,
  admission: string,
): Promise<Response | undefined> {
  const { reuse } = call.images;
  const now = Date.now();
  const own = await reuse.own(found, call.principal, now);
  if (!own) return undefined;
  const { link, isNew } = own;
  const job = { ref: reuse.refOf(link.key), admission };
  const idempotency = await idempotencyOf(call, asked.operation, asked.envelope);
  if (isNew || idempotency) {
    const named = idempotency && { ...idempotency, admission, upstreamId: job.ref, isListed: !isNew };
    // The picture was paid for by whoever asked first.
    const row = { ...link.media, key: link.key, cost: 0 };
    const counted = await call.meter.countHit({ ...payerTerms(call), row, ...(named && { named }) });
    if (counted === "removed") return undefined;
    if (counted && "replay" in counted) return replay(call, asked, counted.replay);
  }
  if (isNew && !(await reuse.keep(link, now))) {
    // The key stands for this link by now.
    if (idempotency) throw notKept;
    return undefined;
  }
  const id = handlesOf(call.config).mint(jobKey(call), job);
  const answer = asked.operation === "run" ? { status: "IN_QUEUE" } : reuse.answer(link, originOf(call));
  logJob(call.exchange, answer.status);
  call.exchange.costMicroUsd = 0;
  call.exchange.cache = "HIT";
  const ageSeconds = Math.max(0, Math.floor((now - link.media.completedAt) / 1000));
  const headers = { Age: String(ageSeconds), "X-Cache": "HIT", "X-Cost": formatUsd(0) };
  return Response.json({ id, ...answer }, { headers });
}
