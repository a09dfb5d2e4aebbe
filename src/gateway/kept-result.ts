// Final results that a meter's alarm fetched for an owner who did not ask in time.
import { limits } from "../contract/limits.ts";
import { isFinal } from "../contract/states.ts";
import { inTime } from "../wire/in-time.ts";
import { answersWithinMs } from "../wire/remote.ts";
import { jobIn, type UpstreamJob } from "./upstream-answer.ts";

/** A handle proves whose the admission is, so the key need not say it. */
export function resultKey(admission: string): string {
  return `result/${admission}`;
}

/** Of a job whose id a notice alone has named: only a handle with the same id leads to it. */
export function provenName({ admission, upstreamId }: { admission: string; upstreamId: string | null }): string {
  return `${admission}/${upstreamId}`;
}

export async function keptResult(kept: KVNamespace, admission: string): Promise<UpstreamJob | undefined> {
  return endedJob(await kept.get(resultKey(admission)).catch(() => null));
}

/** A result as it is kept; what cannot be read, or is no job's end, is none. */
export function endedJob(text: string | null | undefined): UpstreamJob | undefined {
  const job = jobIn(text ?? "");
  return job && isFinal(job.status) ? job : undefined;
}

/** Of a larger result all but its output is kept. */
export const keptBytes = 4 * 1024 * 1024;

/** False where KV does not take it, or takes too long. */
export async function keepResult(kept: KVNamespace, admission: string, body: string | Uint8Array): Promise<boolean> {
  try {
    const options = { expirationTtl: limits.mediaLifetimeMs / 1000 };
    const put = (value: string | ReadableStream) => kept.put(resultKey(admission), value, options);
    await (typeof body === "string" ? inTime(answersWithinMs.comfort, put(body)) : putBytes(body, put));
    return true;
  } catch {
    console.warn(JSON.stringify({ binding: "IMAGES", problem: "a result was not kept, and will be", admission }));
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
