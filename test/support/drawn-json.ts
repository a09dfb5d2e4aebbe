// Draws JSON that is nearly what a schema asks for: valid members beside ones of another type, too many and too few.
import fc from "fast-check";
import type { Schema, Schemas } from "./json-schema.ts";

const maxDepth = 6;

export function nearly(schema: Schema, schemas: Schemas, depth = 0): fc.Arbitrary<unknown> {
  const wild = fc.jsonValue({ maxDepth: 2 });
  if (depth > maxDepth) return wild;
  return fc.oneof({ weight: 6, arbitrary: valid(schema, schemas, depth) }, { weight: 1, arbitrary: wild });
}

function valid(schema: Schema, schemas: Schemas, depth: number): fc.Arbitrary<unknown> {
  if (schema.$ref !== undefined) return nearly(schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}, schemas, depth + 1);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((one) => nearly(one, schemas, depth + 1)));
  if ("const" in schema) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const { minimum = -10, maximum = 1e9 } = schema;
  switch (typeof schema.type === "string" ? schema.type : schema.type?.[0]) {
    case "object":
      return members(schema, schemas, depth);
    case "array":
      return fc.array(nearly(schema.items ?? {}, schemas, depth + 1), { maxLength: 4 });
    case "string":
      return text(schema);
    case "integer":
      return fc.integer({ min: Math.ceil(minimum), max: Math.floor(Math.min(maximum, 2 ** 31)) });
    case "number":
      return fc.double({ min: minimum, max: maximum, noNaN: true });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function members({ properties = {}, required = [] }: Schema, schemas: Schemas, depth: number): fc.Arbitrary<object> {
  const known = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, nearly(schema, schemas, depth + 1)]),
  );
  const requiredKeys = required.filter((name) => name in known);
  const whole = fc.record(known, { requiredKeys });
  const some = fc.record(known, { requiredKeys: [] });
  const strange = fc.dictionary(fc.constantFrom("__proto__", "constructor", "own", ""), fc.jsonValue({ maxDepth: 1 }));
  return fc.oneof(
    { weight: 4, arbitrary: whole },
    { weight: 1, arbitrary: some },
    { weight: 1, arbitrary: fc.tuple(whole, strange).map(([value, more]) => ({ ...value, ...more })) },
  );
}

function text({ format, maxLength = 40 }: Schema): fc.Arbitrary<string> {
  if (format === "uri") return fc.webUrl();
  if (format === "date-time") return fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
  return fc.oneof(fc.string({ maxLength }), fc.string({ unit: "binary", maxLength }));
}
