// What the job interface answers: jobs, stream items, health and the operations on a queue.
import * as z from "zod";
import { jobStates } from "./states.ts";

const count = z.int().min(0);
const durationMs = z.int().min(0);

export const submittedSchema = z.object({ id: z.string(), status: z.enum(jobStates) }).meta({ id: "Submitted" });

export const jobSchema = z
  .looseObject({
    id: z.string(),
    status: z.enum(jobStates),
    output: z.unknown().optional(),
    error: z.string().optional(),
    delayTime: durationMs.optional().describe("Milliseconds that the job waited."),
    executionTime: durationMs.optional().describe("Milliseconds that a worker took."),
    workerId: z.string().optional(),
    retries: count.optional(),
  })
  .meta({ id: "Job" });

const streamItemSchema = z
  .object({ output: z.unknown(), metrics: z.record(z.string(), z.unknown()).optional() })
  .meta({ id: "StreamItem" });

export const streamSchema = z
  .object({ status: z.enum(jobStates), stream: z.array(streamItemSchema) })
  .meta({ id: "Stream" });

/** With `format=array` the items alone. */
export const streamAnswerSchema = z.union([streamSchema, z.array(streamItemSchema)]);

export const healthSchema = z
  .object({
    jobs: z.object({ completed: count, failed: count, inProgress: count, inQueue: count, retried: count }),
    workers: z.object({
      idle: count,
      initializing: count,
      ready: count,
      running: count,
      throttled: count,
      unhealthy: count,
    }),
    scaling: z
      .object({
        type: z.enum(["QUEUE_DELAY", "REQUEST_COUNT"]),
        value: count,
        workersMin: count,
        workersMax: count,
        target: count.describe("How many workers the endpoint's scaler wants now."),
      })
      .optional(),
  })
  .meta({ id: "Health" });
export type Health = z.infer<typeof healthSchema>;

export const purgedSchema = z.object({ removed: count, status: z.literal("completed") }).meta({ id: "Purged" });

export const requestsSchema = z
  .object({
    requests: z.array(z.looseObject({ id: z.string(), status: z.enum(jobStates) })),
    total: count,
    offset: count,
    limit: count,
    hasMore: z.boolean(),
  })
  .meta({ id: "Requests" });

export const metricsSchema = z
  .object({ workers: healthSchema.shape.workers, readyWorkers: z.array(z.string()) })
  .meta({ id: "Metrics" });
