// The public catalog: which models there are, what they take, what they cost.
import { Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../contract/operation.ts";
import { Problem } from "../errors.ts";
import { describeModel, findModel, models } from "../models/index.ts";
import type { AppEnv } from "../wire/exchange.ts";

const entrySchema = z
  .looseObject({
    id: z.string(),
    title: z.string(),
    kind: z.string(),
    price: z.string(),
    output: z.string(),
    reuse: z.string(),
    openAiRoutes: z.array(z.string()).describe("What it is served under, behind `openai/v1/`."),
    input: z.looseObject({}).describe("JSON Schema of the model's input."),
  })
  .meta({ id: "Model" });

export const catalog = new Hono<AppEnv>()
  .get("/models", (c) => c.json({ models: models.map(describeModel) }))
  .get("/models/:model", (c) => {
    const model = findModel(c.req.param("model"));
    if (!model) throw new Problem("MODEL_NOT_FOUND", "There is no such model.");
    return c.json(describeModel(model));
  });

export const catalogOperations: readonly Operation[] = [
  {
    method: "get",
    path: "/models",
    summary: "The catalog of models",
    access: "public",
    answer: z.object({ models: z.array(entrySchema) }),
  },
  {
    method: "get",
    path: "/models/{model}",
    summary: "One model",
    access: "public",
    answer: entrySchema,
    errors: ["MODEL_NOT_FOUND"],
  },
];
