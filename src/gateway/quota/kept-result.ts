// Final results that a meter's alarm fetched for an owner who did not ask in time.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { isFinal } from "../../contract/states.ts";
import { answersWithinMs } from "../../durable/remote.ts";
import { inTime } from "../../isolate/in-time.ts";
import { jobIn, type UpstreamJob } from "../upstream/upstream-answer.ts";

/** A handle proves whose the admission is, so the key need not say it. */
export function resultKey(admission: string): string {
  return `result/${admission}`;
}

/** The name for a result whose upstream id only a notice has told: only a handle with this id leads to it. */
export function provenName({ admission, upstreamId }: { admission: string; upstreamId: string | null }): string {
  return `${admission}/${upstreamId}`;
}

/** Of either name. */
export function admissionIn(name: string): string {
  return name.split("/")[0] ?? name;
}

const metadataSchema = z.object({ run: z.string() });

export interface KeptResult {
  readonly job: UpstreamJob;
  /** The admission that ended so, a job's or a retry's. Undefined where that is not written. */
  readonly run: string | undefined;
}

export async function keptResult(kept: KVNamespace, name: string): Promise<KeptResult | undefined> {
  const entry = await inTime(answersWithinMs.comfort, kept.getWithMetadata(resultKey(name))).catch(() => undefined);
  const job = endedJob(entry?.value);
  return job && { job, run: metadataSchema.safeParse(entry?.metadata).data?.run };
}

/** A result as it is kept; what cannot be read, or is no job's end, is none. */
export function endedJob(text: string | null | undefined): UpstreamJob | undefined {
  const job = jobIn(text ?? "");
  return job && isFinal(job.status) ? job : undefined;
}

/** Of a larger result all but its output is kept. */
export const keptBytes = 4 * 1024 * 1024;

/** What is kept under which name, and whose end it is. */
export interface Keeping {
  readonly name: string;
  readonly run: string;
  readonly body: string | Uint8Array;
}

/**
 * A result lies under the name that its owner asks by, and under that of its own run. Only an end that can be of no other
 * run is written under a run's name. Example: A fails, its retry B completes, and KV takes A's failure late: the name of A
 * says FAILED, and that of B, which is read first, is right.
 */
export function resultNames(asked: readonly string[], run: string): string[] {
  return [...new Set([...asked, run])];
}

/** Those of its names under which KV has not taken it. */
export async function keepUnder(
  kept: KVNamespace,
  names: readonly string[],
  result: Omit<Keeping, "name">,
): Promise<string[]> {
  const taken = await Promise.all(names.map((name) => keepResult(kept, { name, ...result })));
  return names.filter((_, at) => !taken[at]);
}

/** False where KV does not take it, or takes too long. */
export async function keepResult(kept: KVNamespace, { name, run, body }: Keeping): Promise<boolean> {
  try {
    const options = { expirationTtl: limits.mediaLifetimeMs / 1000, metadata: { run } };
    const put = (value: string | ReadableStream) => kept.put(resultKey(name), value, options);
    await (typeof body === "string" ? inTime(answersWithinMs.comfort, put(body)) : putBytes(body, put));
    return true;
  } catch {
    console.warn(JSON.stringify({ binding: "IMAGES", problem: "a result was not kept, and will be", result: name }));
    return false;
  }
}

/** As a stream: the runtime would copy the bytes, and let go of the copy when it next collects garbage. */
async function putBytes(bytes: Uint8Array, put: (text: ReadableStream) => Promise<void>): Promise<void> {
  const { readable, writable } = new FixedLengthStream(bytes.byteLength);
  const writer = writable.getWriter();
  const written = writer.write(bytes).then(() => writer.close());
  try {
    await inTime(answersWithinMs.comfort, Promise.all([put(readable), written]));
  } catch (error) {
    written.catch(() => {});
    writer.abort(error).catch(() => {});
    throw error;
  }
}
