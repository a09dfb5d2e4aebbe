// The URL at which the upstream tells of a job's end. It carries its own proof, and is given only to an upstream that
// can reach it.
import { originOf } from "./answer.ts";
import { handlesOf } from "./handle.ts";
import type { JobCall } from "./job-call.ts";

/** Undefined where a real upstream could not reach us: the meter's alarm asks then. */
export function hookUrl(call: JobCall, admission: string): string | undefined {
  const { publicUrl, upstream } = call.config;
  const origin = originOf(call);
  if (upstream.kind === "remote" && publicUrl === undefined && !origin.startsWith("https://")) return undefined;
  const meter = call.env.USER_METER.idFromName(call.principal.payer).toString();
  return `${origin}/hooks/${handlesOf(call.config).mintHook({ meter, admission })}`;
}
