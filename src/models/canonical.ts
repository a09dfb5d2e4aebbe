// Two requests are the same if their inputs are, with defaults filled in and keys in any order.
import type { ModelInput } from "./model.ts";

/** Takes an input that passed the model's schema, with its defaults. */
export function canonicalInput(input: ModelInput): string {
  return canonical(input);
}

/** Written straight to text: an object rebuilt with sorted keys would lose one named `__proto__` and put numbers first. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`);
  return `{${members.join(",")}}`;
}

/** The seed that was asked for; −1 asks for any. */
export function seedOf(input: ModelInput): number | undefined {
  const seed = input["seed"];
  return typeof seed === "number" && Number.isSafeInteger(seed) && seed !== -1 ? seed : undefined;
}
