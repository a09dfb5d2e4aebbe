// The operations of the job interface: what both faces take and answer under a model's or an endpoint's own path.
import * as z from "zod";
import {
  healthSchema,
  jobSchema,
  metricsSchema,
  purgedSchema,
  requestsSchema,
  streamAnswerSchema,
  submittedSchema,
} from "./job.ts";
import { jobRequestSchema, statusQuerySchema, streamQuerySchema, waitQuerySchema } from "./job-request.ts";

/** Of the list of jobs. */
function pageSchema(furthest: number, most: number) {
  return z.object({
    offset: z.coerce.number().int().min(0).max(furthest).default(0),
    limit: z.coerce.number().int().min(1).max(most).default(100),
  });
}

const asked = { body: jobRequestSchema };

/** `base` is the path up to the operation's name. */
export function jobOperationsAt(base: string, page: { readonly furthest: number; readonly most: number }) {
  const query = pageSchema(page.furthest, page.most);
  return {
    run: { ...asked, method: "post", path: `${base}/run`, summary: "Submit a job", answer: submittedSchema },
    runsync: {
      ...asked,
      method: "post",
      path: `${base}/runsync`,
      summary: "Submit a job and wait for it",
      query: waitQuerySchema,
      answer: jobSchema,
    },
    status: { path: `${base}/status/:job`, summary: "A job", query: statusQuerySchema, answer: jobSchema },
    statusSync: {
      path: `${base}/status-sync/:job`,
      summary: "A job, held until it ends",
      query: waitQuerySchema,
      answer: jobSchema,
    },
    stream: {
      path: `${base}/stream/:job`,
      summary: "What a job has streamed",
      query: streamQuerySchema,
      answer: streamAnswerSchema,
    },
    cancel: { method: "post", path: `${base}/cancel/:job`, summary: "Cancel a job", answer: submittedSchema },
    retry: { method: "post", path: `${base}/retry/:job`, summary: "Run a failed job again", answer: submittedSchema },
    purge: { method: "post", path: `${base}/purge-queue`, summary: "Remove waiting jobs", answer: purgedSchema },
    health: { method: "get", path: `${base}/health`, summary: "Jobs and workers in numbers", answer: healthSchema },
    metrics: { method: "get", path: `${base}/metrics`, summary: "Workers by state", answer: metricsSchema },
    requests: { method: "get", path: `${base}/requests`, summary: "Jobs, newest first", query, answer: requestsSchema },
  } as const;
}

/** A job can be followed by GET and by POST. */
export const followMethods = ["get", "post"] as const;
