// The job interface for app users, as routes with their guards.

import { zValidator } from "@hono/zod-validator";
import { type Context, Hono } from "hono";
import * as z from "zod";
import {
  healthSchema,
  jobSchema,
  purgedSchema,
  requestsSchema,
  streamSchema,
  submittedSchema,
} from "../../contract/job.ts";
import { jobRequestSchema, streamQuerySchema, waitQuerySchema } from "../../contract/job-request.ts";
import { limits } from "../../contract/limits.ts";
import type { Operation as Documented } from "../../contract/operation.ts";
import { bodyErrors } from "../../wire/body-problem.ts";
import { orRefuse } from "../../wire/refusals.ts";
import { behind, type Guard } from "../behind.ts";
import type { GatewayContext } from "../env.ts";
import { floodShield } from "../flood-shield.ts";
import { authenticate, permitted } from "../guards.ts";
import type { OperationName } from "../identity/scope.ts";
import type { Images } from "../images/images.ts";
import { meterOf } from "../meter-stub.ts";
import type { Upstream } from "../upstream.ts";
import { cancel } from "./cancel.ts";
import { authenticateByTicket, events, mintTicket } from "./events.ts";
import { health, status, statusSync, stream } from "./follow.ts";
import type { JobCall } from "./job-call.ts";
import { relayOpenAi } from "./openai.ts";
import { purge, requests } from "./own-jobs.ts";
import { PayersMeter } from "./payers-meter.ts";
import { retry } from "./retry.ts";
import { submitOrReuse } from "./submit-reusable.ts";
import { type JobEnv, knownModel } from "./target.ts";

export type FindUpstream = (c: GatewayContext, payer: string) => Upstream;
export type FindImages = (c: GatewayContext) => Images;

const waitQuery = zValidator("query", waitQuerySchema, orRefuse);
const streamQuery = zValidator("query", streamQuerySchema, orRefuse);
const pageSchema = z.object({
  offset: z.coerce.number().int().min(0).max(100_000).default(0),
  limit: z.coerce.number().int().min(1).max(100).default(100),
});
const readMethods = ["GET", "POST"];

/** The upstream is handed in: the embedded platform and a real service are reached by the same calls. */
export function jobRoutes(findUpstream: FindUpstream, findImages: FindImages): Hono<JobEnv> {
  const jobs = new Hono<JobEnv>();
  const callOf = (c: Context<JobEnv>): JobCall => {
    const { exchange, config, control, principal, target } = c.var;
    const gateway = c as unknown as GatewayContext;
    const waitUntil = (work: Promise<unknown>) => c.executionCtx.waitUntil(work);
    const stub = () => meterOf(c.env, principal.payer);
    return {
      request: c.req.raw,
      path: c.req.path,
      handle: c.req.param("job") ?? "",
      exchange,
      config,
      control,
      principal,
      target,
      upstream: findUpstream(gateway, principal.payer),
      meter: new PayersMeter(principal.payer, stub, waitUntil),
      images: findImages(gateway),
      env: c.env,
      waitUntil,
    };
  };
  const on = (handle: (call: JobCall) => Promise<Response>) => (c: Context<JobEnv>) => handle(callOf(c));
  const openAiErrors: Guard<JobEnv> = (c) => {
    c.get("exchange").errorShape = "openai";
  };
  const byTicket = behind<JobEnv>(authenticateByTicket, floodShield, permitted("events"), knownModel);
  const asUser = (operation: OperationName) =>
    behind<JobEnv>(authenticate, floodShield, permitted(operation), knownModel);

  jobs.use("/v2/:model/openai/*", behind<JobEnv>(openAiErrors));
  jobs.get("/v2/:model/events/:job", byTicket, on(events));
  jobs.post(
    "/v2/:model/run",
    asUser("run"),
    on((call) => submitOrReuse(call, "run")),
  );
  jobs.post("/v2/:model/runsync", asUser("runsync"), waitQuery, (c) =>
    submitOrReuse(callOf(c), "runsync", c.req.valid("query").wait ?? limits.waitMs.default),
  );
  jobs.on(readMethods, "/v2/:model/status/:job", asUser("status"), on(status));
  jobs.on(readMethods, "/v2/:model/status-sync/:job", asUser("status-sync"), waitQuery, (c) =>
    statusSync(callOf(c), c.req.valid("query").wait ?? limits.waitMs.default),
  );
  jobs.on(readMethods, "/v2/:model/stream/:job", asUser("stream"), streamQuery, (c) => {
    const { wait = limits.streamWaitMs.default, format } = c.req.valid("query");
    return stream(callOf(c), wait, format);
  });
  jobs.post("/v2/:model/events/:job", asUser("events"), on(mintTicket));
  jobs.post("/v2/:model/cancel/:job", asUser("cancel"), on(cancel));
  jobs.post("/v2/:model/retry/:job", asUser("retry"), on(retry));
  jobs.get("/v2/:model/health", asUser("health"), on(health));
  jobs.post("/v2/:model/purge-queue", asUser("purge-queue"), on(purge));
  jobs.get("/v2/:model/requests", asUser("requests"), zValidator("query", pageSchema, orRefuse), (c) =>
    requests(callOf(c), c.req.valid("query").offset, c.req.valid("query").limit),
  );
  jobs.on(readMethods, "/v2/:model/openai/:route{.+}", asUser("openai"), on(relayOpenAi));
  return jobs;
}

const base = "/v2/{model}";
const called = [
  "UNAUTHORIZED",
  "TOKEN_EXPIRED",
  "TOKEN_REVOKED",
  "OPERATION_FORBIDDEN",
  "MODEL_FORBIDDEN",
  "MODEL_NOT_FOUND",
  "MODEL_DISABLED",
] as const;
const relayed = [
  ...called,
  "UPSTREAM_BUSY",
  "UPSTREAM_FAILED",
  "UPSTREAM_DOWN",
  "UPSTREAM_TIMEOUT",
  "UPSTREAM_UNREACHABLE",
] as const;
const metered = [
  ...relayed,
  ...bodyErrors,
  "INVALID_REQUEST",
  "METER_UNAVAILABLE",
  "UNAVAILABLE",
  "RATE_LIMITED",
  "TOO_MANY_JOBS",
  "QUOTA_EXCEEDED",
  "IN_PROGRESS",
  "IDEMPOTENCY_MISMATCH",
] as const;
const asked = { access: "user", errors: [...relayed, "JOB_NOT_FOUND"] } as const;
const submitted = { access: "user", method: "post", body: jobRequestSchema, errors: metered } as const;
const ticketSchema = z.object({ url: z.url(), expiresAt: z.iso.datetime() }).meta({ id: "Ticket" });

export const jobOperations: readonly Documented[] = [
  { ...submitted, path: `${base}/run`, summary: "Submit a job", answer: submittedSchema },
  {
    ...submitted,
    path: `${base}/runsync`,
    summary: "Submit a job and wait",
    query: waitQuerySchema,
    answer: jobSchema,
  },
  ...(["get", "post"] as const).flatMap((method): Documented[] => [
    { ...asked, method, path: `${base}/status/{job}`, summary: "A job", answer: jobSchema },
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
  ]),
  {
    access: "user",
    method: "get",
    path: `${base}/openai/{route}`,
    summary: "OpenAI's list of models, v1/models; metered: whatever an endpoint of the operator's lets read",
    answer: z.looseObject({}),
    errors: [...metered, "NOT_FOUND", "ANSWER_NOT_KEPT"],
  },
  {
    access: "user",
    method: "post",
    path: `${base}/openai/{route}`,
    summary: "OpenAI's calls: v1/chat/completions, and whatever an endpoint of the operator's serves",
    body: z.looseObject({}),
    answer: z.looseObject({}),
    errors: [...metered, "NOT_FOUND", "ANSWER_NOT_KEPT"],
  },
  {
    ...asked,
    method: "get",
    path: `${base}/events/{job}`,
    summary: "A job's life as server-sent events",
    contentType: "text/event-stream",
    answer: z.string(),
    query: z.object({ ticket: z.string().optional() }),
  },
  { ...asked, method: "post", path: `${base}/events/{job}`, summary: "A ticket for EventSource", answer: ticketSchema },
  {
    ...asked,
    method: "post",
    path: `${base}/cancel/{job}`,
    summary: "Cancel a job",
    answer: submittedSchema,
    errors: [...asked.errors, "METER_UNAVAILABLE"],
  },
  {
    ...asked,
    method: "post",
    path: `${base}/retry/{job}`,
    summary: "Run a failed job again",
    answer: submittedSchema,
    errors: [...metered, "JOB_NOT_FOUND"],
  },
  { ...asked, method: "get", path: `${base}/health`, summary: "Jobs and workers in numbers", answer: healthSchema },
  { ...asked, method: "post", path: `${base}/purge-queue`, summary: "Cancel your waiting jobs", answer: purgedSchema },
  {
    ...asked,
    method: "get",
    path: `${base}/requests`,
    summary: "Your jobs, newest first",
    query: pageSchema,
    answer: requestsSchema,
  },
];
