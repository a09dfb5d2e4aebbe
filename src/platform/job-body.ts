// A job request as it comes in: bounded, parsed and checked once, and turned into what the queue stores.
import { type JobRequest, jobRequestSchema } from "../contract/job-request.ts";
import { limits } from "../contract/limits.ts";
import { describeFaults, Problem } from "../errors.ts";
import type { Member, Members } from "../json/member-scan.ts";
import { orThrow } from "./answers.ts";
import { type LargeJsonBody, openJsonBody, parseJsonBody, storeBody, Uploads } from "./large-body.ts";
import { newJobId } from "./queue/job.ts";
import type { QueueStub, Submission } from "./queue/queue-calls.ts";
import { callToSubmit } from "./queue-client.ts";

const encoder = new TextEncoder();

export interface SubmitOptions {
  readonly sync: boolean;
  readonly waitMs: number;
  readonly origin: string;
}

/** Reads the request and hands it to the queue; the job's id. */
export async function submitBody(
  request: Request,
  options: SubmitOptions,
  queue: () => QueueStub,
): Promise<{ id: string }> {
  const limit = options.sync ? limits.runsyncPayloadBytes : limits.runPayloadBytes;
  const body = await openJsonBody(request, limit);
  const submission =
    body instanceof Uint8Array
      ? submissionOf(parseJsonBody(body), options)
      : await storeSubmission(body, limit, options, queue);
  // It refuses an upload only where it has removed it already.
  return orThrow(await callToSubmit(queue, (stub) => stub.submit(submission)));
}

/** The request is stored as it came, never parsed whole: only what steers the job is read. No worker gets its webhook. */
async function storeSubmission(
  body: LargeJsonBody,
  limit: number,
  options: SubmitOptions,
  queue: () => QueueStub,
): Promise<Submission> {
  let checked: { request: JobRequest; inputFrom: number; inputTo: number } | undefined;
  const uploads = new Uploads(queue, options.sync ? "runsync" : "run");
  const accept = (root: Member, members: Members) => {
    const input = members.get("input");
    const steering = Object.fromEntries(steeringMembers.flatMap((name) => valueIn(members, name)));
    const request = checkRequest(
      root.kind === "object"
        ? { ...steering, ...(input && { input: placeholderOfKind[input.kind] }) }
        : placeholderOfKind[root.kind],
    );
    checked = { request, inputFrom: (input?.from ?? 0) - root.from, inputTo: (input?.to ?? 0) - root.from };
  };
  const members = ["input", ...steeringMembers];
  const scan = { members, read: steeringMembers, withheld: ["webhook"], carry: undefined, accept };
  const stored = await storeBody(body, limit, scan, uploads);
  if (!stored || !checked) throw new Problem("INVALID_JSON", "body: is not valid JSON");
  const { request, ...range } = checked;
  return { ...termsOf(request, options), ...range, body: stored };
}

const steeringMembers = ["policy", "webhook", "s3Config"];
/** What stands for a value that is not read, so that it gets the verdict of its kind. */
const placeholderOfKind = { object: {}, array: [], string: "", number: 0, boolean: false, null: null };

function valueIn(members: Members, name: string): [string, unknown][] {
  const member = members.get(name);
  return member ? [[name, member.value]] : [];
}

function checkRequest(value: unknown): JobRequest {
  const checked = jobRequestSchema.safeParse(value);
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error.issues));
  return checked.data;
}

/** A worker gets the request without its webhook, which is the queue's to call: who knows the address could call it, too. */
export function submissionOf(value: unknown, options: SubmitOptions): Submission {
  const request = checkRequest(value);
  const { input, id: _, webhook: __, ...others } = request;
  const inputJson = encoder.encode(JSON.stringify(input));
  const rest = encoder.encode(Object.keys(others).length > 0 ? `,${JSON.stringify(others).slice(1)}` : "}");
  const inputFrom = inputKey.byteLength;
  const inputTo = inputFrom + inputJson.byteLength;
  const body = new Uint8Array(inputTo + rest.byteLength);
  body.set(inputKey);
  body.set(inputJson, inputFrom);
  body.set(rest, inputTo);
  return { ...termsOf(request, options), body, inputFrom, inputTo };
}

function termsOf({ policy, webhook }: JobRequest, options: SubmitOptions) {
  return {
    id: newJobId(options.sync),
    sync: options.sync,
    waitMs: options.waitMs,
    origin: options.origin,
    lowPriority: policy?.lowPriority ?? false,
    ttlMs: policy?.ttl ?? limits.ttlMs.default,
    executionTimeoutMs: policy?.executionTimeout ?? null,
    webhook: webhook ?? null,
  };
}

const inputKey = encoder.encode('{"input":');
