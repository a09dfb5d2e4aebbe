// An answer from the cache. It costs no money. The payer's meter is called only if the owner has not had this link
// before, or sends an idempotency key.
import { Problem } from "../../errors.ts";
import type { Reusable } from "../media/image-cache.ts";
import { usdText } from "../quota/amounts.ts";
import { idempotencyOf, payerTerms } from "./admit-request.ts";
import { originOf } from "./answer.ts";
import { handlesOf } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";
import { logJob } from "./logged-job.ts";
import { replay, type SubmitOptions } from "./submit.ts";

const notKept = new Problem("UNAVAILABLE", "The answer cannot be kept at the moment.", { "Retry-After": "1" });

/** Undefined where no link can be made, which is a miss. A rule of the payer's may refuse a new one. */
export async function answerHit(
  call: JobCall,
  options: SubmitOptions,
  found: Reusable,
  admission: string,
): Promise<Response | undefined> {
  const { reuse } = call.images;
  const now = Date.now();
  const owning = reuse.own(found, call.principal, now);
  const own = owning instanceof Promise ? await owning : owning;
  if (!own) return undefined;
  const { link, isNew } = own;
  const job = { upstreamId: reuse.upstreamIdOf(link.key), admission };
  const keyed = idempotencyOf(call, options.operation, options.envelope);
  const idempotency = keyed && (await keyed);
  if (isNew || idempotency) {
    const named = idempotency && { ...idempotency, admission, upstreamId: job.upstreamId, isListed: !isNew };
    // The first caller paid for the picture.
    const row = { ...link.media, key: link.key, cost: 0 };
    const counted = await call.meter.countHit({ ...payerTerms(call), row, ...(named && { named }) });
    if (counted === "removed") return undefined;
    if (counted && "replay" in counted) return replay(call, options, counted.replay);
  }
  if (isNew && !(await reuse.keep(link, now))) {
    // By now the idempotency key stands for this link, so a miss would make a second job.
    if (idempotency) throw notKept;
    return undefined;
  }
  const id = handlesOf(call.config).mint(jobKey(call), job);
  const answer = options.operation === "run" ? { status: "IN_QUEUE" } : reuse.answer(link, originOf(call));
  logJob(call.exchange, answer.status);
  call.exchange.costMicroUsd = 0;
  call.exchange.cache = "HIT";
  const ageSeconds = Math.max(0, Math.floor((now - link.media.completedAt) / 1000));
  const headers = { Age: String(ageSeconds), "X-Cache": "HIT", "X-Cost": usdText(0) };
  return Response.json({ id, ...answer }, { headers });
}
