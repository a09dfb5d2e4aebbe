// A job request at the door: bounded, parsed and checked once, and turned into what the queue stores.
import { jobRequestSchema } from "../contract/job-request.ts";
import { limits } from "../contract/limits.ts";
import { describeFaults, Problem } from "../errors.ts";
import { parseJson, readWhole } from "../wire/body.ts";
import { newJobId } from "./queue/job.ts";
import type { Submission } from "./queue/queue.ts";

const encoder = new TextEncoder();

export interface Door {
  readonly sync: boolean;
  readonly waitMs: number;
  readonly origin: string;
}

export async function readSubmission(request: Request, door: Door): Promise<Submission> {
  const limit = door.sync ? limits.runsyncPayloadBytes : limits.runPayloadBytes;
  return submissionOf(parseJson(await readWhole(request, limit)), door);
}

export function submissionOf(value: unknown, door: Door): Submission {
  const checked = jobRequestSchema.safeParse(value);
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error.issues));
  const { input, id: _, ...others } = checked.data;
  const { policy, webhook } = checked.data;
  const inputJson = encoder.encode(JSON.stringify(input));
  const rest = encoder.encode(Object.keys(others).length > 0 ? `,${JSON.stringify(others).slice(1)}` : "}");
  const inputFrom = inputKey.byteLength;
  const inputTo = inputFrom + inputJson.byteLength;
  const body = new Uint8Array(inputTo + rest.byteLength);
  body.set(inputKey);
  body.set(inputJson, inputFrom);
  body.set(rest, inputTo);
  return {
    id: newJobId(door.sync),
    sync: door.sync,
    waitMs: door.waitMs,
    origin: door.origin,
    lowPriority: policy?.lowPriority ?? false,
    ttlMs: policy?.ttl ?? limits.ttlMs.default,
    executionTimeoutMs: policy?.executionTimeout ?? null,
    webhook: webhook ?? null,
    body,
    inputFrom,
    inputTo,
  };
}

const inputKey = encoder.encode('{"input":');
