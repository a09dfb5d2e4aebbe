// The worker protocol: unmodified workers of the real service take jobs here and bring results.
import { zValidator } from "@hono/zod-validator";
import { type Context, Hono } from "hono";
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import type { Operation } from "../../contract/operation.ts";
import { describeFaults, Problem } from "../../errors.ts";
import { parseJson, readWhole } from "../../wire/body.ts";
import { orRefuse } from "../../wire/refusals.ts";
import { accepted, splice } from "../answers.ts";
import type { EndpointEnv } from "../endpoints.ts";
import { hold } from "../held.ts";
import type { TakenJob } from "../queue/endpoint-queue.ts";
import { answerTake } from "./hand-over.ts";

/** A worker's result may be as large as a request, with room for its error beside it. */
const resultBytes = limits.runsyncPayloadBytes + 64 * 1024;

/** A job that is over carries an output, an error, or both; a report of progress says so. */
const resultSchema = z.looseObject({
  output: z.unknown().optional(),
  error: z.unknown().optional(),
  status: z.string().optional(),
  stopPod: z.boolean().optional(),
});
const chunkSchema = z.looseObject({ output: z.unknown() });
const workerSchema = z.object({ worker: z.string().regex(/^[\w.-]{1,128}$/) });
const batchSchema = z.object({ batch_size: z.coerce.number().int().min(1).max(100).default(1) });
const pingSchema = z.object({
  job_id: z
    .string()
    .max(64 * 1024)
    .default(""),
});

const encoder = new TextEncoder();
const worker = zValidator("param", workerSchema, orRefuse);
/** The hold of a long poll, told by tests. */
const holdMs = limits.takeHoldMs;

export const workerProtocol = new Hono<EndpointEnv>()
  .get("/job-take/:worker", worker, (c) =>
    answerTake(c, { worker: c.req.valid("param").worker, count: 1, holdMs, write: writeFirst }),
  )
  .get("/job-take-batch/:worker", worker, zValidator("query", batchSchema, orRefuse), (c) =>
    answerTake(c, {
      worker: c.req.valid("param").worker,
      count: c.req.valid("query").batch_size,
      holdMs,
      write: writeAll,
    }),
  )
  .get("/job-stop/:worker", worker, async (c) => {
    const { worker } = c.req.valid("param");
    const jobsToStop = await hold(heldFor(c), (queue, leftMs) => queue.stops(worker, leftMs));
    return jobsToStop.length > 0 ? c.json({ jobsToStop }) : c.body(null, 204);
  })
  .post("/job-done/:worker/:job", worker, async (c) => {
    const [worker, job, queue] = [c.req.valid("param").worker, c.req.param("job"), c.get("queue")()];
    const { output, error, status, stopPod } = read(resultSchema, await readWhole(c.req.raw, resultBytes));
    const bytes = output === undefined ? null : encoder.encode(JSON.stringify(output));
    if (status === "IN_PROGRESS") return c.json(accepted(await queue.report(worker, job, bytes)));
    const done = await queue.finish(worker, job, { error: errorText(error), output: bytes });
    if (stopPod) await queue.restart(worker);
    return c.json(accepted(done));
  })
  .post("/job-stream/:worker/:job", worker, async (c) => {
    const { output } = read(chunkSchema, await readWhole(c.req.raw, resultBytes));
    return c.json(accepted(await c.get("queue")().append(c.req.valid("param").worker, c.req.param("job"), output)));
  })
  .get("/ping/:worker", worker, zValidator("query", pingSchema, orRefuse), async (c) => {
    const jobs = c.req.valid("query").job_id.split(",").filter(Boolean);
    await c.get("queue")().ping(c.req.valid("param").worker, jobs);
    return c.json({ ok: true });
  });

/** Whatever the content type says: workers call JSON a form. */
function read<T>(schema: z.ZodType<T>, bytes: Uint8Array): T {
  const checked = schema.safeParse(parseJson(bytes));
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error.issues));
  return checked.data;
}

/** Clients read `error` as a string, whatever the worker put there. */
function errorText(error: unknown): string | null {
  if (error === undefined || error === null || error === "") return null;
  return typeof error === "string" ? error : JSON.stringify(error);
}

function heldFor(c: Context<EndpointEnv>) {
  const waitUntil = (promise: Promise<unknown>) => c.executionCtx.waitUntil(promise);
  return { queue: c.get("queue"), waitMs: holdMs, signal: c.req.raw.signal, waitUntil };
}

/** The request as it came, its id last: whatever the client called `id` counts no more. */
function spliceJob({ id, request }: TakenJob): BodyInit {
  return splice("", request, `,"id":${JSON.stringify(id)}}`);
}

function writeFirst([job]: readonly TakenJob[]): BodyInit {
  return job ? spliceJob(job) : "";
}

async function writeAll(jobs: readonly TakenJob[]): Promise<string> {
  const texts = await Promise.all(jobs.map((job) => new Response(spliceJob(job)).text()));
  return `[${texts.join(",")}]`;
}

const base = "/platform/v2/{endpoint}";
const errors = ["UNAUTHORIZED", "ENDPOINT_NOT_FOUND", "INVALID_REQUEST"] as const;
const resultErrors = [...errors, "INVALID_JSON", "JOB_NOT_FOUND", "JOB_NOT_HELD", "PAYLOAD_TOO_LARGE"] as const;
const asked = { access: "platform", method: "get", errors } as const;
const told = { access: "platform", method: "post", errors: resultErrors, answer: z.looseObject({}) } as const;

export const workerOperations: readonly Operation[] = [
  {
    ...asked,
    path: `${base}/job-take/{worker}`,
    summary: "Take a job, held until there is one",
    answer: z.looseObject({}),
  },
  {
    ...{ ...asked, path: `${base}/job-take-batch/{worker}`, summary: "Take several jobs" },
    ...{ query: batchSchema, answer: z.array(z.looseObject({})) },
  },
  {
    ...{ ...asked, path: `${base}/job-stop/{worker}`, summary: "What to stop, held until there is something" },
    answer: z.object({ jobsToStop: z.array(z.string()) }),
  },
  {
    ...told,
    path: `${base}/job-done/{worker}/{job}`,
    summary: "A result, or a report of progress",
    body: resultSchema,
  },
  { ...told, path: `${base}/job-stream/{worker}/{job}`, summary: "A chunk of output", body: chunkSchema },
  { ...asked, path: `${base}/ping/{worker}`, summary: "Still here", query: pingSchema, answer: z.looseObject({}) },
];
