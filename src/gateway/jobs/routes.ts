// The job interface for app users: each route with its guards, in one statement.
import * as z from "zod";
import { followMethods, jobOperationsAt } from "../../contract/job-operations.ts";
import { jobRequestSchema } from "../../contract/job-request.ts";
import { limits } from "../../contract/limits.ts";
import { bodyErrors } from "../../http/body-problem.ts";
import { type GatewayRoute, type Guard, gatewayRoutesFor } from "../gateway-route.ts";
import { authenticate } from "../identity/authenticate.ts";
import { floodShield } from "../identity/flood-shield.ts";
import type { OperationName } from "../identity/operations.ts";
import { callerErrors, permitted } from "../identity/scope.ts";
import { calledModel } from "./called-model.ts";
import { cancel } from "./cancel.ts";
import { estimate, estimateSchema } from "./estimate.ts";
import { authenticateByTicket, events, mintTicket } from "./events.ts";
import { numbers, status, statusSync, stream } from "./follow.ts";
import { type FindUpstream, JobCall } from "./job-call.ts";
import { relayOpenAi } from "./openai.ts";
import { purge, requests } from "./own-jobs.ts";
import { retry } from "./retry.ts";
import { submitOrReuse } from "./submit-reusable.ts";

const modelErrors = ["MODEL_FORBIDDEN", "MODEL_NOT_FOUND", "MODEL_DISABLED"] as const;
const relayErrors = [
  ...callerErrors,
  ...modelErrors,
  "UPSTREAM_BUSY",
  "UPSTREAM_FAILED",
  "UPSTREAM_DOWN",
  "UPSTREAM_TIMEOUT",
  "UPSTREAM_UNREACHABLE",
] as const;
export const meteredErrors = [
  ...relayErrors,
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
const jobErrors = [...relayErrors, "JOB_NOT_FOUND"] as const;

const ticketSchema = z.object({ url: z.url(), expiresAt: z.iso.datetime() }).meta({ id: "Ticket" });
const eventsQuery = z.object({
  ticket: z.string().optional(),
  progress: z.enum(["true"]).optional().describe("Tells what a worker says of its progress, too."),
});

/** Sets the model that the path names, or answers 404. */
const knownModel: Guard<JobCall> = (call) => {
  call.target = calledModel(call.params["model"] ?? "", call.control);
  call.exchange.model = call.target.name;
};

export const asUser = (operation: OperationName) => [authenticate, floodShield, permitted(operation), knownModel];
const byTicket = [authenticateByTicket, floodShield, permitted("events"), knownModel];

const model = "/v2/:model";
const operations = jobOperationsAt(model, { furthest: 100_000, most: 100 });
const submitting = { access: "user", errors: meteredErrors } as const;
const asking = { access: "user", errors: jobErrors } as const;

export function jobRoutes(findUpstream: FindUpstream): GatewayRoute[] {
  const route = gatewayRoutesFor((c) => new JobCall(c, findUpstream));
  return [
    route({ ...submitting, ...operations.run }, asUser("run"), (call) => submitOrReuse(call, "run")),
    route({ ...submitting, ...operations.runsync }, asUser("runsync"), (call, { query }) =>
      submitOrReuse(call, "runsync", query.wait ?? limits.waitMs.default),
    ),
    route(
      {
        method: "post",
        path: `${model}/estimate`,
        access: "user",
        summary: "What a job would reserve. It is checked as `run` checks it, and not started",
        body: jobRequestSchema,
        answer: estimateSchema,
        errors: [...callerErrors, ...modelErrors, "RATE_LIMITED"],
      },
      asUser("estimate"),
      estimate,
    ),
    ...followMethods.flatMap((method) => [
      route({ ...asking, ...operations.status, method }, asUser("status"), (call, { query }) =>
        status(call, query.ttl),
      ),
      route({ ...asking, ...operations.statusSync, method }, asUser("status-sync"), (call, { query }) =>
        statusSync(call, query.wait ?? limits.waitMs.default),
      ),
      route(
        { ...asking, ...operations.stream, method },
        asUser("stream"),
        (call, { query: { wait = limits.streamWaitMs.default, format } }) => stream(call, wait, format),
      ),
      route(
        {
          access: "user",
          method,
          path: `${model}/openai/:route{.+}`,
          summary:
            method === "get"
              ? "OpenAI's list of models, v1/models; metered: whatever an endpoint of the operator's lets read"
              : "OpenAI's calls: v1/chat/completions, and whatever an endpoint of the operator's serves",
          ...(method === "post" && { body: z.looseObject({}), streams: true }),
          answer: z.looseObject({}),
          errorShape: "openai",
          errors: [...meteredErrors, "NOT_FOUND", "ANSWER_NOT_KEPT"],
        },
        asUser("openai"),
        relayOpenAi,
      ),
    ]),
    route(
      {
        ...asking,
        method: "get",
        path: `${model}/events/:job`,
        summary: "A job's life as server-sent events",
        contentType: "text/event-stream",
        answer: z.string(),
        query: eventsQuery,
      },
      byTicket,
      (call, { query }) => events(call, query.progress !== undefined),
    ),
    route(
      {
        ...asking,
        method: "post",
        path: `${model}/events/:job`,
        summary: "A ticket for EventSource",
        answer: ticketSchema,
      },
      asUser("events"),
      mintTicket,
    ),
    route(
      { ...operations.cancel, access: "user", errors: [...jobErrors, "METER_UNAVAILABLE"] },
      asUser("cancel"),
      cancel,
    ),
    route(
      { ...operations.retry, access: "user", errors: [...meteredErrors, "JOB_NOT_FOUND", "NOT_RETRYABLE"] },
      asUser("retry"),
      retry,
    ),
    route({ ...asking, ...operations.health }, asUser("health"), (call) => numbers(call, "health")),
    route({ ...asking, ...operations.metrics }, asUser("health"), (call) => numbers(call, "metrics")),
    route({ ...asking, ...operations.purge, summary: "Cancel your waiting jobs" }, asUser("purge-queue"), purge),
    route(
      { ...asking, ...operations.requests, summary: "Your jobs, newest first" },
      asUser("requests"),
      (call, { query: { offset, limit } }) => requests(call, offset, limit),
    ),
  ];
}
