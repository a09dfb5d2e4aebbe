// Inputs that a model accepts, drawn from the JSON Schema that it publishes.
import fc from "fast-check";

const cat = "https://media.example/cat.png";

/** Anything that the published schema allows. */
export function allowed(schema: object): fc.Arbitrary<unknown> {
  const parts = schema as Record<string, unknown>;
  const { type, enum: options, pattern, properties = {}, required = [] } = parts;
  const [from, to] = [parts["minimum"], parts["maximum"]] as (number | undefined)[];
  if (Array.isArray(options)) return fc.constantFrom(...options);
  switch (type) {
    case "boolean":
      return fc.boolean();
    case "integer":
      return fc.integer({ min: from ?? Number.MIN_SAFE_INTEGER, max: to ?? Number.MAX_SAFE_INTEGER });
    case "number":
      return fc.double({ min: from ?? -1e6, max: to ?? 1e6, noNaN: true });
    case "array": {
      const items = parts["items"] as object;
      return fc.array(allowed(items), { minLength: Number(parts["minItems"] ?? 0), maxLength: 3 });
    }
    case "object": {
      const fields = Object.entries(properties as Record<string, object>);
      return fc.record(Object.fromEntries(fields.map(([key, part]) => [key, allowed(part)])), {
        requiredKeys: required as string[],
      });
    }
    default:
      if (pattern === undefined) return texts(Number(parts["minLength"] ?? 0), Number(parts["maxLength"]));
      return fc.constantFrom(...[cat, "720p", "1920*1080"].filter((text) => new RegExp(String(pattern)).test(text)));
  }
}

const texts = (shortest: number, longest: number) =>
  fc.oneof(
    fc.string({ minLength: shortest, maxLength: Math.min(longest, 50) }),
    fc.integer({ min: shortest, max: Math.min(longest, 200_000) }).map((length) => "猫".repeat(length)),
  );
