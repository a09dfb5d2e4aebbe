// The rules of a quota, as plans and tokens write them: requests, concurrent jobs, money, uploaded and kept bytes.
import * as z from "zod";

export const modelNameSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, "expected a model's name");
export const planNameSchema = z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/, "expected letters, digits, - and _");

const maxAmount = 1_000_000_000;
const modelsSchema = z.array(modelNameSchema).min(1).max(100).describe("Only these models count. Without it, all.");
const count = z.int().min(0).max(maxAmount);
/** As far as a number is exact, and ten of them together. */
const bytes = z.int().min(0).max(1e14);
export const usdSchema = z.number().min(0).max(maxAmount);

export const ruleSchema = z
  .discriminatedUnion("unit", [
    z.strictObject({
      unit: z.literal("requests"),
      limit: count,
      per: z.enum(["second", "minute", "hour", "day", "month"]),
      models: modelsSchema.optional(),
    }),
    z.strictObject({
      unit: z.literal("jobs").describe("Jobs at the same time."),
      limit: count,
      models: modelsSchema.optional(),
    }),
    z.strictObject({
      unit: z.literal("usd"),
      limit: usdSchema,
      per: z.enum(["day", "month"]).describe("The calendar's, in UTC."),
      models: modelsSchema.optional(),
    }),
    z.strictObject({
      unit: z.literal("bytes").describe("Uploaded."),
      limit: bytes,
      per: z.enum(["day", "month"]).describe("The calendar's, in UTC."),
    }),
    z.strictObject({
      unit: z.literal("stored").describe("Bytes of uploads kept at the same time."),
      limit: bytes,
    }),
  ])
  .meta({ id: "Rule" });
export type Rule = z.infer<typeof ruleSchema>;

export const units = ["requests", "jobs", "usd", "bytes", "stored"] as const satisfies readonly Rule["unit"][];

/** Undefined where a rule counts for all; uploads are for no model yet. */
export function modelsOf(rule: Rule): readonly string[] | undefined {
  return "models" in rule ? rule.models : undefined;
}

export const rulesSchema = z.array(ruleSchema).max(20);
