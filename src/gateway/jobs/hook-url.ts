// Where the upstream tells of a job's end: a URL that proves itself, asked for only where it can be reached.
import type { Context } from "hono";
import { originOf } from "./answer.ts";
import { handlesOf } from "./handle.ts";
import type { JobEnv } from "./target.ts";

/** Undefined where a real upstream could not reach us: the meter's alarm asks then. */
export async function hookUrl(c: Context<JobEnv>, admission: string): Promise<string | undefined> {
  const { publicUrl, upstream } = c.get("config");
  const origin = originOf(c);
  if (upstream.kind === "remote" && publicUrl === undefined && !origin.startsWith("https://")) return undefined;
  const meter = c.env.USER_METER.idFromName(c.get("principal").payer).toString();
  return `${origin}/hooks/${await handlesOf(c.get("config")).mintHook({ meter, admission })}`;
}
