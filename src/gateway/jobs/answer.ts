// A job's answer as its owner sees it: the handle for the upstream's id, and the headers that go with it.
import type { Context } from "hono";
import { isFinal } from "../../contract/states.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import type { Handle } from "./handle.ts";
import { endingOf, settle } from "./settling.ts";
import type { JobEnv } from "./target.ts";

/** Answers, and tells the meter beside it where the job is at its end. */
export function answerJob(c: Context<JobEnv>, answer: UpstreamJob, job: Handle, handle: string): Response {
  const body = JSON.stringify({ ...answer, id: handle });
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (isFinal(answer.status)) {
    const ending = endingOf(answer, c.get("target"), job, Date.now());
    if (ending) c.executionCtx.waitUntil(settle(c.get("meter")(), ending, () => body).catch(logUnsettled));
    const cost = ending?.costMicroUsd ?? undefined;
    if (cost !== undefined) {
      c.get("exchange").costMicroUsd = cost;
      headers["X-Cost"] = formatUsd(cost);
    }
  }
  return c.body(body, 200, headers);
}

/** The meter's own alarm will ask the upstream: nothing is lost but time. */
export function logUnsettled(error: unknown): void {
  console.warn(
    JSON.stringify({ settle: "left to the meter's alarm", error: error instanceof Error ? error.name : "" }),
  );
}

/** Decimal, without an exponent and without trailing zeros. */
export function formatUsd(microUsd: number): string {
  return (microUsd / 1e6).toFixed(6).replace(/\.?0+$/, "") || "0";
}
