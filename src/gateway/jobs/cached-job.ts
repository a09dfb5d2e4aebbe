// Jobs that were answered from the cache: their handle's id is a media key, and no upstream knows them.
import { Problem } from "../../errors.ts";
import type { UpstreamJob } from "../upstream/upstream-answer.ts";
import { originOf } from "./answer.ts";
import { handlesOf, type JobRef } from "./handle.ts";
import type { JobCall } from "./job-call.ts";
import { logJob } from "./logged-job.ts";

/** Undefined for a job that the upstream has. A cached job whose media has expired or was deleted answers 404. */
export function cachedJob(call: JobCall, job: JobRef): Promise<UpstreamJob> | undefined {
  const key = call.images.reuse.keyOf(job.upstreamId);
  return key === undefined ? undefined : readCached(call, job, key);
}

async function readCached(call: JobCall, job: JobRef, key: string): Promise<UpstreamJob> {
  const answer = await call.timed("kv", call.images.reuse.job(key, originOf(call), Date.now()));
  if (!answer) throw new Problem("JOB_NOT_FOUND", "job not found");
  logJob(call.exchange, answer.status);
  const caller = { owner: call.principal.owner, model: call.target.name };
  return { ...answer, id: handlesOf(call.config).mint(caller, job) };
}
