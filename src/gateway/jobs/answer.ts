// A job's answer as its owner sees it: the handle for the upstream's id, and the headers that go with it.
import { ownOrigin } from "../../config.ts";
import { isFinal } from "../../contract/states.ts";
import { usdText } from "../quota/amounts.ts";
import { keepUnder, resultNames } from "../quota/kept-result.ts";
import type { UpstreamJob } from "../upstream/upstream-answer.ts";
import { handedOut } from "./handed-out.ts";
import type { JobRef } from "./handle.ts";
import type { JobCall } from "./job-call.ts";
import { logJob } from "./logged-job.ts";
import { logUnsettled } from "./payers-meter.ts";
import { endingOf, forgotten, settle } from "./settling.ts";

/** How an answer was got. */
export interface Seen {
  /** The moment before the upstream was asked, or `forgotten`. */
  readonly askedAt: number;
  /** It streamed: only part of it is known. */
  readonly partly?: boolean;
}

/**
 * A job as its owner sees it. When it has ended, its media is kept before the answer leaves; the meter is told in the
 * background.
 */
export async function presentJob(
  call: JobCall,
  answer: UpstreamJob,
  job: JobRef,
  handle: string,
  { askedAt, partly = false }: Seen,
): Promise<{ readonly presented: UpstreamJob; readonly costMicroUsd: number | undefined }> {
  const seenAt = Date.now();
  const { name: model, model: known } = call.target;
  const ending = endingOf(answer, call.target, job, { askedAt, seenAt });
  const handing = handedOut.inStatus(call, job, answer, ending);
  if (handing) await handing;
  const ended = { ...job, owner: call.principal.owner, model, known, ending, partly };
  const presenting = call.images.links.present(answer, ended, originOf(call), seenAt);
  const seen = presenting instanceof Promise ? await presenting : presenting;
  const presented = { ...seen.answer, id: handle };
  const body = () => JSON.stringify(presented);
  const keep = (run: string) => keepUnder(call.env.IMAGES, resultNames([job.admission], run), { run, body: body() });
  const telling =
    ending &&
    settle(call.meter, { ...ending, media: seen.kept }, body, askedAt === forgotten || partly ? undefined : keep);
  if (telling) call.waitUntil(telling.catch(logUnsettled));
  const costMicroUsd = seen.joined ? 0 : (ending?.costMicroUsd ?? undefined);
  logJob(call.exchange, answer.status);
  if (ending && costMicroUsd !== undefined) call.exchange.costMicroUsd = costMicroUsd;
  return { presented, costMicroUsd };
}

/** Where the gateway's own links lead to. */
export function originOf({ config, request }: JobCall): string {
  return ownOrigin(config, request.url);
}

export async function answerJob(
  call: JobCall,
  answer: UpstreamJob,
  job: JobRef,
  handle: string,
  seen: Seen,
): Promise<Response> {
  const { presented, costMicroUsd } = await presentJob(call, answer, job, handle, seen);
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (isFinal(answer.status) && costMicroUsd !== undefined) headers["X-Cost"] = usdText(costMicroUsd);
  return new Response(JSON.stringify(presented), { headers });
}
