// A job's answer as its owner sees it: the handle for the upstream's id, and the headers that go with it.
import type { Context } from "hono";
import { ownOrigin } from "../../config.ts";
import { isFinal } from "../../contract/states.ts";
import { nameOfFault } from "../../errors.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import type { Handle } from "./handle.ts";
import { logJob } from "./logged-job.ts";
import { endingOf, settle } from "./settling.ts";
import type { JobEnv } from "./target.ts";

/**
 * A job as its owner sees it. At its end the media is kept first, and the meter is told beside it. Of an answer that
 * streamed only part is known.
 */
export async function presentJob(
  c: Context<JobEnv>,
  answer: UpstreamJob,
  job: Handle,
  handle: string,
  partly = false,
): Promise<{ readonly presented: UpstreamJob; readonly costMicroUsd: number | undefined }> {
  const seenAt = Date.now();
  const { name: model, model: known } = c.get("target");
  const ending = endingOf(answer, c.get("target"), job, seenAt);
  const ended = { ...job, owner: c.get("principal").owner, model, known, ending, partly };
  const seen = await c.get("images").links.present(answer, ended, originOf(c), seenAt);
  const presented = { ...seen.answer, id: handle };
  const body = () => JSON.stringify(presented);
  const telling = ending && settle(c.get("meter"), { ...ending, media: seen.kept }, body);
  if (telling) c.executionCtx.waitUntil(telling.catch(logUnsettled));
  const costMicroUsd = seen.joined ? 0 : (ending?.costMicroUsd ?? undefined);
  logJob(c, answer.status);
  if (ending && costMicroUsd !== undefined) c.get("exchange").costMicroUsd = costMicroUsd;
  return { presented, costMicroUsd };
}

/** Where the gateway's own links lead to. */
export function originOf(c: Context<JobEnv>): string {
  return ownOrigin(c.get("config"), c.req.url);
}

export async function answerJob(
  c: Context<JobEnv>,
  answer: UpstreamJob,
  job: Handle,
  handle: string,
  partly = false,
): Promise<Response> {
  const { presented, costMicroUsd } = await presentJob(c, answer, job, handle, partly);
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (isFinal(answer.status) && costMicroUsd !== undefined) headers["X-Cost"] = formatUsd(costMicroUsd);
  return c.body(JSON.stringify(presented), 200, headers);
}

/** The meter's own alarm will ask the upstream: nothing is lost but time. */
export function logUnsettled(error: unknown): void {
  console.warn(JSON.stringify({ settle: "left to the meter's alarm", error: nameOfFault(error) }));
}

/** Decimal, without an exponent and without trailing zeros. */
export function formatUsd(microUsd: number): string {
  return (microUsd / 1e6).toFixed(6).replace(/\.?0+$/, "") || "0";
}
