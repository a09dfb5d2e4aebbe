// Jobs that were answered from the cache: their handle's id is a media key, and no upstream knows them.
import type { Context } from "hono";
import { Problem } from "../../errors.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import { originOf } from "./answer.ts";
import { type Handle, handlesOf } from "./handle.ts";
import { logJob } from "./logged-job.ts";
import type { JobEnv } from "./target.ts";

/** Undefined for a job of the upstream's. One whose media is over or deleted is known no more. */
export async function cachedJob(c: Context<JobEnv>, job: Handle): Promise<UpstreamJob | undefined> {
  const { reuse } = c.get("images");
  const key = reuse.keyOf(job.ref);
  if (key === undefined) return undefined;
  const answer = await reuse.job(key, originOf(c), Date.now());
  if (!answer) throw new Problem("JOB_NOT_FOUND", "job not found");
  logJob(c, answer.status);
  const caller = { owner: c.get("principal").owner, model: c.get("target").name };
  return { ...answer, id: await handlesOf(c.get("config")).mint(caller, job) };
}
