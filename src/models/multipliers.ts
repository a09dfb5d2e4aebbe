// Members of a body that multiply what it costs: how many answers it asks for, and how long each may be.

import * as z from "zod";
import { isObject } from "../json/is-object.ts";
import { Unread } from "./model.ts";

/** `n`, `n_predict`, `best_of`, `beam_width`, `num_images`, `numberOfImages`, `batch_size`, `max_tokens`, `max_new_tokens`. */
const multiplierName =
  /^(n|n[_-].+|num.*|best[_-]?of|beam[_-]?(width|size|count)|batch[_-]?size|samples|max.*tokens|max[_-]?length)$/i;

/** Objects that clients put such members into, beside the top of the body. */
const containers: ReadonlySet<string> = new Set([
  "sampling_params",
  "extra_body",
  "parameters",
  "generation_config",
  "options",
]);

/** Members that hold what is said or shown, and schemas in which any name may stand: they do not say how often. */
const said: ReadonlySet<string> = new Set([
  "images",
  "messages",
  "tools",
  "functions",
  "response_format",
  "guided_json",
  "metadata",
]);

export interface Multiplier {
  /** `["sampling_params", "n"]` */
  readonly path: readonly string[];
  readonly value: unknown;
}

/** A member that is null counts as absent. */
export function multipliersOf(body: Readonly<Record<string, unknown>>, above: readonly string[] = []): Multiplier[] {
  return Object.entries(body).flatMap(([name, value]) => {
    const path = [...above, name];
    if (value === null || value === undefined) return [];
    if (multiplierName.test(name) || (value instanceof Unread && mayHide(name, value.kind))) return [{ path, value }];
    if (said.has(name)) return [];
    return within(value).flatMap((inner) => multipliersOf(inner, path));
  });
}

/** A client may wrap them into any object: the service may look there. */
function within(value: unknown): Record<string, unknown>[] {
  if (Array.isArray(value)) return value.flatMap(within);
  return isObject(value) ? [value] : [];
}

/** Whether a member that was not read may hold a multiplier. */
function mayHide(name: string, kind: Unread["kind"]): boolean {
  return containers.has(name) || ((kind === "object" || kind === "array") && !said.has(name));
}

/** Whether a member must be read to know what a body costs. */
export function mayMultiply(name: string, kind: Unread["kind"]): boolean {
  return multiplierName.test(name) || mayHide(name, kind);
}

export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

/** Whether the schema says what the multiplier may be. One of anything multiplies nothing. */
export function isBounded({ path, value }: Multiplier, fields: z.ZodRawShape): boolean {
  return isCount(value) && (value === 1 || knows(fields, path));
}

function knows(fields: z.ZodRawShape, [name = "", ...inner]: readonly string[]): boolean {
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (field === undefined || inner.length === 0) return field !== undefined;
  const shape = shapeOf(field);
  return shape !== undefined && knows(shape, inner);
}

function shapeOf(field: z.core.$ZodType): z.ZodRawShape | undefined {
  if (field instanceof z.ZodObject) return field.shape;
  if (field instanceof z.ZodPrefault || field instanceof z.ZodOptional || field instanceof z.ZodNullable) {
    return shapeOf(field.unwrap());
  }
  return undefined;
}
