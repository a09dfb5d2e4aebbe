// What the log line says of a job that an answer tells of.
import type { Context } from "hono";
import { isJobState } from "../../contract/states.ts";
import type { JobEnv } from "./target.ts";

/** Only a status of the contract's: an upstream may answer with any word. */
export function logJob(c: Context<JobEnv>, status: string): void {
  if (isJobState(status)) c.get("exchange").job = status;
}
