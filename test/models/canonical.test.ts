// Equal requests are one text, different ones are two; and which seed counts as one.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalInput, findModel, type Model, seedOf } from "../../src/models/index.ts";
import { amount } from "../support/amount.ts";

function model(id: string): Model {
  const found = findModel(id);
  if (!found) throw new Error(`no model ${id}`);
  return found;
}

const flux = model("black-forest-labs-flux-1-dev");
const granite = model("granite-4-0-h-small");
const canonical = (input: unknown, of = flux) => canonicalInput(of.input.parse(input));
const reversed = (value: unknown): unknown =>
  typeof value !== "object" || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, part]) => [key, reversed(part)]),
      );

describe("the canonical input", () => {
  it("has the defaults filled in and the keys in order", () => {
    expect(canonical({ width: 512, prompt: "a cat" })).toBe(
      '{"guidance":7.5,"height":1024,"image_format":"jpeg","num_inference_steps":28,"prompt":"a cat","seed":-1,"width":512}',
    );
  });

  it("fills in defaults inside, too", () => {
    const messages = [{ role: "user", content: "hi" }];
    expect(canonical({ messages, sampling_params: { seed: -1 } }, granite)).toBe(canonical({ messages }, granite));
  });

  it("is the same for equal requests, whatever the order of their keys, and stays what it is", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })), (leaked) => {
        const input = {
          ...leaked,
          prompt: "a cat",
          width: 512,
          height: 512,
          seed: 1,
          guidance: 2,
          num_inference_steps: 4,
        };
        const usual = { ...input, image_format: "png", negative_prompt: "dogs" };
        expect(canonical(reversed(usual))).toBe(canonical(usual));
        expect(canonical(JSON.parse(canonical(usual)))).toBe(canonical(usual));
      }),
      { numRuns: amount(2000) },
    );
  });

  it.each([
    [{ prompt: "a cat" }, { prompt: "a cat " }],
    [
      { prompt: "a cat", seed: 1 },
      { prompt: "a cat", seed: 2 },
    ],
    [{ prompt: "a cat" }, { prompt: "a cat", leaked: null }],
    [
      { prompt: "a cat", leaked: ["a", "b"] },
      { prompt: "a cat", leaked: ["b", "a"] },
    ],
    [
      { prompt: "a cat", leaked: "1" },
      { prompt: "a cat", leaked: 1 },
    ],
    [{ prompt: 'a","seed":"1' }, { prompt: "a", seed: 1 }],
    [JSON.parse('{"prompt":"a cat","leaked":{"__proto__":1}}'), { prompt: "a cat", leaked: {} }],
  ])("tells %o from %o", (one, other) => {
    expect(canonical(one)).not.toBe(canonical(other));
  });
});

describe("the seed", () => {
  it.each([
    [{ seed: 0 }, 0],
    [{ seed: 42 }, 42],
    [{ seed: -1 }, undefined],
    [{}, undefined],
    [{ seed: "42" }, undefined],
    [{ seed: 4.2 }, undefined],
    [{ seed: null }, undefined],
    [{ sampling_params: { seed: 42 } }, undefined],
  ])("of %o is %o", (input, seed) => {
    expect(seedOf(input)).toBe(seed);
  });
});
