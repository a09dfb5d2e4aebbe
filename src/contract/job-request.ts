// What a client sends: the job request with its policy and storage settings, and the query of the held operations.
import * as z from "zod";
import { limits } from "./limits.ts";

const wholeMs = ({ min, max }: { min: number; max: number }) => z.int().min(min).max(max);
const queryMs = ({ min, max }: { min: number; max: number }) =>
  z
    .string()
    .regex(/^\d{1,15}$/, "expected a whole number of milliseconds")
    .transform(Number)
    .pipe(wholeMs({ min, max }));

/** Clients write members that they do not use as null: these are left out, as if they were not there. */
function withoutNull<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], null> } {
  for (const name in value) if (value[name] === null) delete value[name];
  return value as never;
}

const policySchema = z
  .looseObject({
    executionTimeout: wholeMs(limits.executionTimeoutMs)
      .nullish()
      .describe("Milliseconds that a worker may take. Overrides the endpoint's own setting for this job."),
    lowPriority: z.boolean().nullish().describe("The job starts no worker."),
    ttl: wholeMs(limits.ttlMs).nullish().describe("Milliseconds from submission after which the job is removed."),
  })
  .transform(withoutNull)
  .meta({ id: "Policy" });
export type Policy = z.infer<typeof policySchema>;

const setting = z.string().max(2048);

const s3ConfigSchema = z
  .looseObject({
    accessId: setting.nullish(),
    accessSecret: setting.nullish(),
    bucketName: setting.nullish(),
    endpointUrl: setting.nullish(),
  })
  .transform(withoutNull)
  .meta({ id: "S3Config", description: "An S3-compatible bucket, handed to the worker." });

const webhookFault = `expected an http or https URL of at most ${limits.webhook.urlLength} characters`;
const webhookSchema = z
  .url({ protocol: /^https?$/, error: webhookFault })
  .max(limits.webhook.urlLength, webhookFault)
  .describe("Called with the job's final status.");
const noWebhookSchema = z.literal("").transform(() => null);

/** Unknown keys are tolerated, since clients send their own. */
export const jobRequestSchema = z
  .looseObject({
    input: z.looseObject({}).describe("Parameters of the model or worker."),
    webhook: z.union([webhookSchema, noWebhookSchema], { error: webhookFault }).nullish(),
    policy: policySchema.nullish(),
    s3Config: s3ConfigSchema.nullish(),
  })
  .transform(withoutNull)
  .meta({ id: "JobRequest" });
export type JobRequest = z.infer<typeof jobRequestSchema>;

export const waitQuerySchema = z.object({ wait: queryMs(limits.waitMs).optional() });
export const streamQuerySchema = z.object({
  wait: queryMs(limits.streamWaitMs).optional(),
  format: z.enum(["array"]).optional(),
});
export const statusQuerySchema = z.object({ ttl: queryMs(limits.ttlMs).optional() });
