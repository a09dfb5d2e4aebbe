// The job interface: run, follow, steer.

import { zValidator } from "@hono/zod-validator";
import { type Context, Hono } from "hono";
import * as z from "zod";
import { ownOrigin } from "../config.ts";
import {
  healthSchema,
  jobSchema,
  metricsSchema,
  purgedSchema,
  requestsSchema,
  streamSchema,
  submittedSchema,
} from "../contract/job.ts";
import { jobRequestSchema, statusQuerySchema, streamQuerySchema, waitQuerySchema } from "../contract/job-request.ts";
import { limits } from "../contract/limits.ts";
import type { Operation } from "../contract/operation.ts";
import { Problem } from "../errors.ts";
import { bodyErrors } from "../wire/body-problem.ts";
import { orRefuse } from "../wire/refusals.ts";
import { accepted, answerJob } from "./answers.ts";
import type { EndpointEnv } from "./endpoints.ts";
import { ask, askOnce, hold } from "./held.ts";
import { submitBody } from "./job-body.ts";

const pageSchema = z.object({
  offset: z.coerce.number().int().min(0).max(1_000_000).default(0),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
});
const readMethods = ["GET", "POST"];

export const jobs = new Hono<EndpointEnv>()
  .post("/run", async (c) => {
    const door = { sync: false, waitMs: 0, origin: originOf(c) };
    const { id } = await submitBody(c.req.raw, door, c.get("queue"));
    return c.json({ id, status: "IN_QUEUE" });
  })
  .post("/runsync", zValidator("query", waitQuerySchema, orRefuse), async (c) => {
    const { wait = limits.waitMs.default } = c.req.valid("query");
    const door = { sync: true, waitMs: wait, origin: originOf(c) };
    const { id } = await submitBody(c.req.raw, door, c.get("queue"));
    const view = await hold(heldBy(c, wait), (queue, leftMs, ticket) => queue.wait(id, leftMs, ticket, "runsync"));
    return answerJob(view);
  })
  .on(readMethods, "/status/:job", zValidator("query", statusQuerySchema, orRefuse), async (c) => {
    const { ttl = null } = c.req.valid("query");
    const job = jobOf(c);
    return answerJob(await ask(c.get("queue"), (queue) => queue.status(job, ttl)));
  })
  .on(readMethods, "/status-sync/:job", zValidator("query", waitQuerySchema, orRefuse), async (c) => {
    const { wait = limits.waitMs.default } = c.req.valid("query");
    const job = jobOf(c);
    return answerJob(await hold(heldBy(c, wait), (queue, leftMs, ticket) => queue.wait(job, leftMs, ticket, "status")));
  })
  .on(readMethods, "/stream/:job", zValidator("query", streamQuerySchema, orRefuse), async (c) => {
    const { wait = limits.streamWaitMs.default, format } = c.req.valid("query");
    const job = jobOf(c);
    const held = hold(heldBy(c, wait), (queue, leftMs, ticket) => queue.stream(job, leftMs, ticket));
    const { status, items } = accepted(await held);
    const stream = `[${items.join(",")}]`;
    const body = format === "array" ? stream : `{"status":"${status}","stream":${stream}}`;
    return c.body(body, 200, { "Content-Type": "application/json" });
  })
  .post("/cancel/:job", async (c) => {
    const job = jobOf(c);
    return c.json(accepted(await ask(c.get("queue"), (queue) => queue.cancel(job))));
  })
  .post("/retry/:job", async (c) => {
    const job = jobOf(c);
    return c.json(accepted(await askOnce(c.get("queue"), (queue) => queue.retry(job))));
  })
  .post("/purge-queue", async (c) => {
    const { removed } = accepted(await askOnce(c.get("queue"), (queue) => queue.purge()));
    return c.json({ removed, status: "completed" });
  })
  .get("/health", async (c) => c.json(accepted(await ask(c.get("queue"), (queue) => queue.health()))))
  .get("/metrics", async (c) => c.json(accepted(await ask(c.get("queue"), (queue) => queue.metrics()))))
  .get("/requests", zValidator("query", pageSchema, orRefuse), async (c) => {
    const { offset, limit } = c.req.valid("query");
    return c.json(accepted(await ask(c.get("queue"), (queue) => queue.requests(offset, limit))));
  });

export function originOf(c: Context<EndpointEnv>): string {
  return ownOrigin(c.get("config"), c.req.url);
}

/** Nothing else was ever a job's id; asking for it is the same as asking for a job that is gone. */
const jobId = /^[\w-]{1,128}$/;

export function jobOf(c: Context<EndpointEnv>): string {
  const job = c.req.param("job") ?? "";
  if (!jobId.test(job)) throw new Problem("JOB_NOT_FOUND", "job not found");
  return job;
}

export function heldBy(c: Context<EndpointEnv>, waitMs: number) {
  const waitUntil = (promise: Promise<unknown>) => c.executionCtx.waitUntil(promise);
  return { queue: c.get("queue"), waitMs, signal: c.req.raw.signal, waitUntil };
}

const base = "/platform/v2/{endpoint}";
const reached = ["UNAUTHORIZED", "ENDPOINT_NOT_FOUND", "RATE_LIMITED", "INVALID_REQUEST", "UNAVAILABLE"] as const;
const found = [...reached, "JOB_NOT_FOUND"] as const;
const submitErrors = [...reached, ...bodyErrors, "QUEUE_FULL"] as const;
const asked = { access: "platform", errors: found } as const;

export const jobOperations: readonly Operation[] = [
  {
    method: "post",
    path: `${base}/run`,
    summary: "Submit a job",
    access: "platform",
    body: jobRequestSchema,
    answer: submittedSchema,
    errors: submitErrors,
  },
  {
    method: "post",
    path: `${base}/runsync`,
    summary: "Submit a job and wait for it",
    access: "platform",
    query: waitQuerySchema,
    body: jobRequestSchema,
    answer: jobSchema,
    errors: submitErrors,
  },
  ...readMethods.flatMap((method) => followOperations(method === "GET" ? "get" : "post")),
  { ...asked, method: "post", path: `${base}/cancel/{job}`, summary: "Cancel a job", answer: submittedSchema },
  {
    ...asked,
    method: "post",
    path: `${base}/retry/{job}`,
    summary: "Run a failed job again",
    answer: submittedSchema,
    errors: [...found, "NOT_RETRYABLE"],
  },
  { ...asked, method: "post", path: `${base}/purge-queue`, summary: "Remove waiting jobs", answer: purgedSchema },
  { ...asked, method: "get", path: `${base}/health`, summary: "Jobs and workers in numbers", answer: healthSchema },
  { ...asked, method: "get", path: `${base}/metrics`, summary: "Workers by state", answer: metricsSchema },
  {
    ...asked,
    method: "get",
    path: `${base}/requests`,
    summary: "The jobs, newest first",
    query: pageSchema,
    answer: requestsSchema,
  },
];

function followOperations(method: "get" | "post"): Operation[] {
  return [
    { ...asked, method, path: `${base}/status/{job}`, summary: "A job", query: statusQuerySchema, answer: jobSchema },
    {
      ...asked,
      method,
      path: `${base}/status-sync/{job}`,
      summary: "A job, held until it ends",
      query: waitQuerySchema,
      answer: jobSchema,
    },
    {
      ...asked,
      method,
      path: `${base}/stream/{job}`,
      summary: "What a job has streamed",
      query: streamQuerySchema,
      answer: streamSchema,
    },
  ];
}
