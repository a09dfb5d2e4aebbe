// The public catalog: which models there are, what they take, what they cost.
import * as z from "zod";
import { Problem } from "../errors.ts";
import { describeModel, findModel, models } from "../models/index.ts";
import { gatewayRoute } from "./gateway-route.ts";

const usd = z.number().min(0);
const pricingSchema = z
  .object({
    per: z.string().describe("What is paid for: image, video, megapixel, second, job, million tokens and the like."),
    usd: usd.optional(),
    usdBy: z
      .object({ field: z.string(), values: z.record(z.string(), usd) })
      .optional()
      .describe("One price for each value of a field of the input."),
    inputUsd: usd.optional().describe("For tokens that are read."),
    outputUsd: usd.optional().describe("For tokens that are written."),
    upTo: z.literal(true).optional().describe("The numbers are the top of a range; the answer tells the price."),
    maxUsd: usd.describe("The most that a job can cost."),
  })
  .meta({ id: "Pricing" });

const entrySchema = z
  .looseObject({
    id: z.string(),
    title: z.string(),
    kind: z.string(),
    price: z.string().describe("As documented, for people."),
    pricing: pricingSchema,
    output: z.string(),
    reuse: z.string(),
    openAiRoutes: z.array(z.string()).describe("What it is served under, behind `openai/v1/`."),
    input: z.looseObject({}).describe("JSON Schema of the model's input."),
  })
  .meta({ id: "Model" });

export const catalogRoutes = [
  gatewayRoute(
    {
      method: "get",
      path: "/models",
      summary: "The catalog of models",
      access: "public",
      answer: z.object({
        models: z.array(entrySchema),
        samples: z.boolean().describe("No model service is connected: the embedded platform answers with samples."),
      }),
    },
    [],
    ({ config }) => Response.json({ models: models.map(describeModel), samples: config.upstream.kind === "embedded" }),
  ),
  gatewayRoute(
    {
      method: "get",
      path: "/models/:model",
      summary: "One model",
      access: "public",
      answer: entrySchema,
      errors: ["MODEL_NOT_FOUND"],
    },
    [],
    ({ params }) => {
      const model = findModel(params["model"] ?? "");
      if (!model) throw new Problem("MODEL_NOT_FOUND", "There is no such model.");
      return Response.json(describeModel(model));
    },
  ),
];
