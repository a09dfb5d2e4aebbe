// The worker protocol: unmodified workers of the real service take jobs here and bring results.

import { zValidator } from "@hono/zod-validator";
import { type Context, Hono } from "hono";
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import type { Operation } from "../../contract/operation.ts";
import { bodyErrors } from "../../wire/body-problem.ts";
import { orRefuse } from "../../wire/refusals.ts";
import { accepted, splice, spliceFlowing } from "../answers.ts";
import type { EndpointEnv } from "../endpoints.ts";
import { ask, askOnce, hold } from "../held.ts";
import { heldBy, jobOf } from "../jobs.ts";
import { readJson } from "../large-body.ts";
import type { Body, TakenJob } from "../queue/views.ts";
import { knock } from "./knock.ts";
import { checked, readResult, resultBytes, resultSchema } from "./result.ts";

const chunkSchema = z.looseObject({ output: z.unknown() });
const workerSchema = z.object({
  worker: z.string().regex(/^[\w.-]{1,128}$/, "expected a name of letters, digits, _, . and -"),
});
const batchSchema = z.object({ batch_size: z.coerce.number().int().min(1).max(100).default(1) });
const pingSchema = z.object({
  job_id: z
    .string()
    .max(64 * 1024)
    .default(""),
});

const encoder = new TextEncoder();
const worker = zValidator("param", workerSchema, orRefuse);

export const workerProtocol = new Hono<EndpointEnv>()
  .get("/job-take/:worker", worker, async (c) => {
    const { worker } = c.req.valid("param");
    const taken = await take(c, worker, 1);
    const [job] = taken.jobs;
    return job ? hand(c, worker, taken, "", job.request, endOf(job)) : c.body(null, 204);
  })
  .get("/job-take-batch/:worker", worker, zValidator("query", batchSchema, orRefuse), async (c) => {
    const { worker } = c.req.valid("param");
    const taken = await take(c, worker, c.req.valid("query").batch_size);
    return taken.jobs.length > 0 ? hand(c, worker, taken, "[", await listOf(taken.jobs), "]") : c.body(null, 204);
  })
  .get("/job-stop/:worker", worker, async (c) => {
    const { worker } = c.req.valid("param");
    const held = heldBy(c, limits.takeHoldMs);
    const stops = accepted(await hold(held, (queue, leftMs, ticket) => queue.stops(worker, ticket, leftMs)));
    return stops.length > 0 ? c.json({ jobsToStop: stops }) : c.body(null, 204);
  })
  .post("/job-done/:worker/:job", worker, async (c) => {
    const [{ worker }, job, queue] = [c.req.valid("param"), jobOf(c), c.get("queue")];
    const { output, error, status, stopPod } = await readResult(c.req.raw, queue);
    const outcome = { error: errorText(error), output };
    const told =
      status === "IN_PROGRESS"
        ? await askOnce(queue, (stub) => stub.report(worker, job, output))
        : await askOnce(queue, (stub) => stub.finish(worker, job, outcome));
    if ("refused" in told && output && "upload" in output) await ask(queue, (stub) => stub.discard(output.upload));
    if (status !== "IN_PROGRESS" && stopPod) await ask(queue, (stub) => stub.restart(worker));
    return c.json(accepted(told));
  })
  .post("/job-stream/:worker/:job", worker, async (c) => {
    const [{ worker }, job, queue] = [c.req.valid("param"), jobOf(c), c.get("queue")];
    const { output } = checked(chunkSchema, await readJson(c.req.raw, resultBytes));
    return c.json(accepted(await askOnce(queue, (stub) => stub.append(worker, job, output))));
  })
  .get("/ping/:worker", worker, zValidator("query", pingSchema, orRefuse), async (c) => {
    const { worker } = c.req.valid("param");
    const jobs = c.req.valid("query").job_id.split(",").filter(Boolean);
    return c.json(accepted(await ask(c.get("queue"), (queue) => queue.ping(worker, jobs))));
  });

const json = { "Content-Type": "application/json" };

/** Clients read `error` as a string, whatever the worker put there. */
function errorText(error: unknown): string | null {
  if (error === undefined || error === null || error === "") return null;
  return typeof error === "string" ? error : JSON.stringify(error);
}

interface Taken {
  readonly jobs: readonly TakenJob[];
  /** The poll was held, so its worker may have left meanwhile. */
  readonly waited: boolean;
}

async function take(c: Context<EndpointEnv>, worker: string, count: number): Promise<Taken> {
  const askedAt = Date.now();
  const held = heldBy(c, limits.takeHoldMs);
  const jobs = accepted(await hold(held, (queue, leftMs, ticket) => queue.take(worker, ticket, count, leftMs)));
  if (!c.req.raw.signal.aborted) return { jobs, waited: Date.now() - askedAt >= waitedMs };
  const returned = giveBack(c, worker, jobs);
  c.executionCtx.waitUntil(returned);
  await returned;
  return { jobs: [], waited: true };
}

function giveBack(c: Context<EndpointEnv>, worker: string, jobs: readonly TakenJob[]): Promise<void> {
  const ids = jobs.map(({ id }) => id);
  return ids.length === 0 ? Promise.resolve() : ask(c.get("queue"), (queue) => queue.giveBack(worker, ids));
}

/** A poll that was answered sooner was held for nobody. */
const waitedMs = 20;

/** Jobs whose worker left during the held poll, or in the middle of the answer, go back at once. */
function hand(
  c: Context<EndpointEnv>,
  worker: string,
  { jobs, waited }: Taken,
  ...[before, middle, after]: [string, Body, string]
): Response {
  const { signal } = c.req.raw;
  const waitUntil = (promise: Promise<unknown>) => c.executionCtx.waitUntil(promise);
  const broken = () => waitUntil(giveBack(c, worker, jobs));
  const ready = waited ? (to: WritableStream) => knock(to, signal) : undefined;
  const flows = waited || middle instanceof ReadableStream;
  const body = flows
    ? spliceFlowing(before, middle, after, { waitUntil, broken, ...(ready && { ready }) })
    : splice(before, middle, after);
  return new Response(body, { headers: json });
}

/** The request is as it came, its id last: whatever the client called `id` counts no more. */
function endOf({ id }: TakenJob): string {
  return `,"id":${JSON.stringify(id)}}`;
}

async function listOf(jobs: readonly TakenJob[]): Promise<Uint8Array> {
  const texts = await Promise.all(jobs.map((job) => new Response(splice("", job.request, endOf(job))).text()));
  return encoder.encode(texts.join(","));
}

const base = "/platform/v2/{endpoint}";
const errors = ["UNAUTHORIZED", "ENDPOINT_NOT_FOUND", "INVALID_REQUEST"] as const;
const resultErrors = [...errors, ...bodyErrors, "JOB_NOT_FOUND", "JOB_NOT_HELD"] as const;
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
    ...asked,
    path: `${base}/job-take-batch/{worker}`,
    summary: "Take several jobs",
    query: batchSchema,
    answer: z.array(z.looseObject({})),
  },
  {
    ...asked,
    path: `${base}/job-stop/{worker}`,
    summary: "What to stop, held until there is something",
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
