// A model as the public catalog shows it.
import * as z from "zod";
import type { Model } from "./model.ts";

export type CatalogEntry = Pick<
  Model,
  "id" | "title" | "kind" | "price" | "pricing" | "output" | "reuse" | "openAiRoutes"
> & {
  /** What may be sent as `input`, as JSON Schema. */
  readonly input: z.core.JSONSchema.BaseSchema;
};

const entries = new WeakMap<Model, CatalogEntry>();

export function describeModel(model: Model): CatalogEntry {
  const known = entries.get(model);
  if (known) return known;
  const { id, title, kind, price, pricing, output, reuse, openAiRoutes } = model;
  const input = z.toJSONSchema(model.input, { io: "input" });
  const entry = { id, title, kind, price, pricing, output, reuse, openAiRoutes, input };
  entries.set(model, entry);
  return entry;
}
