// What a worker reports of a job: its output, an error, or both. A large output is stored as it comes, never parsed whole.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { describeFaults, Problem } from "../../errors.ts";
import type { Members } from "../../json/member-scan.ts";
import { type LargeJsonBody, openJsonBody, parseJsonBody, storeBody, Uploads } from "../large-body.ts";
import type { Payload, QueueStub } from "../queue/queue-calls.ts";

/** A worker's result may be as large as a request, with room for its error beside it. */
export const resultBytes = limits.runsyncPayloadBytes + 64 * 1024;

/** A job that is over carries an output, an error, or both; a report of progress says so. */
export const resultSchema = z.looseObject({
  output: z.unknown().optional(),
  error: z.unknown().optional(),
  status: z.string().optional(),
  stopPod: z.boolean().optional(),
});

export interface Result extends Pick<z.output<typeof resultSchema>, "error" | "status" | "stopPod"> {
  /** JSON, or the upload that holds it. */
  readonly output: Payload | null;
}

const encoder = new TextEncoder();

/** Whatever the content type says: workers call JSON a form. */
export async function readResult(request: Request, queue: () => QueueStub): Promise<Result> {
  const body = await openJsonBody(request, resultBytes);
  if (!(body instanceof Uint8Array)) return storeResult(body, queue);
  const { output, ...others } = checked(resultSchema, parseJsonBody(body));
  return { ...others, output: output === undefined ? null : encoder.encode(JSON.stringify(output)) };
}

async function storeResult(body: LargeJsonBody, queue: () => QueueStub): Promise<Result> {
  let result: z.output<typeof resultSchema> = {};
  const accept = (root: { kind: string }, members: Members) => {
    const values = read.flatMap((name) => (members.has(name) ? [[name, members.get(name)?.value]] : []));
    result = checked(resultSchema, root.kind === "object" ? Object.fromEntries(values) : null);
    const output = members.get("output");
    if (output && output.to - output.from > limits.runsyncPayloadBytes) throw tooLarge;
  };
  const scan = { members: ["output", ...read], read, carry: "output", accept };
  const stored = await storeBody(body, resultBytes, scan, new Uploads(queue, "done"));
  return { ...result, output: stored ?? null };
}

const read = ["error", "status", "stopPod"];
const tooLarge = new Problem("PAYLOAD_TOO_LARGE", `The output is larger than ${limits.runsyncPayloadBytes} bytes.`);

export function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (!result.success) throw new Problem("INVALID_REQUEST", describeFaults(result.error.issues));
  return result.data;
}
