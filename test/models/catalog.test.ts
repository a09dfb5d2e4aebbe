// The catalog says what the docs say, field by field, and refuses what they rule out.
/// <reference types="vite/types/importMeta.d.ts" />
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { describeModel as entryOf, findModel, type Model, models } from "../../src/models/index.ts";
import { type Documented, documented, type FieldType } from "./documented.ts";
import { changed, faults, pathOf, read, smallest } from "./requests.ts";

const files = import.meta.glob<Record<string, unknown>>("../../src/models/*.ts", { eager: true });

const isModel = (value: unknown): value is Model => typeof value === "object" && value !== null && "maxPrice" in value;

function modelOf({ id }: Pick<Documented, "id">): Model {
  const model = findModel(id);
  if (!model) throw new Error(`no model ${id}`);
  return model;
}

/** Where image clients send sizes of their own: the listed ones are a preference. */
const isPreference = (model: Model, name: string) => name === "size" && model.kind !== "video";

const wrong: Readonly<Record<FieldType, unknown>> = {
  string: 7,
  integer: 1.5,
  number: "1",
  boolean: "true",
  array: { 0: "https://media.example/cat.png" },
};

describe("the list", () => {
  it("has every documented model, once", () => {
    expect(models.map((model) => model.id).sort()).toEqual(documented.map(({ id }) => id).sort());
    expect(new Set(models.map((model) => model.id)).size).toBe(models.length);
  });

  it.each(Object.keys(files))("has all models of %s", (path) => {
    const exported = Object.values(files[path] ?? {}).flat();
    expect(exported.filter(isModel).filter((model) => !models.includes(model))).toEqual([]);
  });

  it("knows nothing else", () => {
    expect(findModel("flux")).toBeUndefined();
    expect(findModel("__proto__")).toBeUndefined();
  });
});

describe.each(documented)("$id", (facts) => {
  const model = modelOf(facts);
  const valid = smallest(facts);

  it("is what the docs call it, at their price", () => {
    const { id, title, kind, price } = facts;
    expect(model).toMatchObject({ id, title, kind, price });
  });

  it("accepts the least, and requires each part of it", () => {
    expect(faults(model, valid)).toEqual([]);
    for (const name of facts.required) {
      expect(faults(model, changed(valid, name, undefined)), name).toEqual([pathOf(name).join(".")]);
    }
    expect(faults(model, {}).sort()).toEqual(facts.required.filter((name) => name in valid).sort());
  });

  it("fills in the documented defaults, and accepts them spelled out", () => {
    const parsed = model.input.parse(valid);
    for (const [name, preset] of Object.entries(facts.defaults ?? {})) {
      if (!facts.required.includes(name)) expect(read(parsed, name), name).toEqual(preset);
      expect(faults(model, changed(valid, name, preset)), name).toEqual([]);
    }
  });

  it("adds nothing that is neither documented nor sent", () => {
    const named = Object.values(facts.types).flat();
    const parsed = model.input.parse({ ...valid, leaked: { maxPollAttempts: 3 } });
    const { leaked, ...rest } = parsed;
    expect(leaked).toEqual({ maxPollAttempts: 3 });
    expect(Object.keys(rest).filter((key) => !named.some((name) => pathOf(name)[0] === key))).toEqual([]);
  });

  it("refuses a value of another type, and says where", () => {
    for (const [type, names] of Object.entries(facts.types) as [FieldType, string[]][]) {
      for (const name of names) {
        expect(faults(model, changed(valid, name, wrong[type])), name).toEqual([pathOf(name).join(".")]);
      }
    }
  });

  it("tells a text that cannot be right in words for people", () => {
    for (const name of facts.types.string ?? []) {
      const { error } = model.input.safeParse(changed(valid, name, "\u0000"));
      for (const { message } of error?.issues ?? []) expect(message, name).not.toMatch(/pattern|\^/);
    }
  });

  it("keeps to the documented ranges, ends included", () => {
    for (const [name, [from, to]] of Object.entries(facts.ranges ?? {})) {
      expect(faults(model, changed(valid, name, from)), name).toEqual([]);
      expect(faults(model, changed(valid, name, to)), name).toEqual([]);
      expect(faults(model, changed(valid, name, from - 1)), name).toEqual([pathOf(name).join(".")]);
      expect(faults(model, changed(valid, name, to + 1)), name).toEqual([pathOf(name).join(".")]);
    }
  });

  it("takes the documented options, and no others where they decide", () => {
    for (const [name, options] of Object.entries(facts.options ?? {})) {
      for (const option of options) expect(faults(model, changed(valid, name, option)), name).toEqual([]);
      const other = typeof options[0] === "number" ? 7 : isPreference(model, name) ? "1x1" : "1111*1111";
      expect(faults(model, changed(valid, name, other)), name).toEqual([pathOf(name).join(".")]);
      if (isPreference(model, name)) expect(faults(model, changed(valid, name, "1328*1328"))).toEqual([]);
    }
  });

  it("takes as many pictures as documented", () => {
    for (const [name, [fewest, most]] of Object.entries(facts.counts ?? {})) {
      const pictures = (count: number) => Array(count).fill("https://media.example/cat.png");
      for (const count of [fewest, most]) expect(faults(model, changed(valid, name, pictures(count)))).toEqual([]);
      for (const count of [fewest - 1, most + 1]) {
        expect(faults(model, changed(valid, name, pictures(count))), name).toEqual([name]);
      }
    }
  });

  it("is reused by its seed where it has one, never as text", () => {
    const seeded = model.kind !== "text" && facts.types.integer?.includes("seed") === true;
    expect(model.reuse).toBe(seeded ? "seeded" : "never");
  });

  it("publishes its input as JSON Schema", () => {
    const { input } = entryOf(model);
    expect(input).toMatchObject({ $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" });
    expect([...(input.required ?? [])].sort()).toEqual(facts.required.filter((name) => name in valid).sort());
    for (const [name, preset] of Object.entries(facts.defaults ?? {})) {
      const at = pathOf(name).join(".properties.").split(".");
      expect(at.reduce<unknown>(member, input.properties), name).toMatchObject({ default: preset });
    }
    expect(unbounded(input)).toEqual([]);
    const readBack = z.fromJSONSchema(input);
    expect(readBack.safeParse(valid).success).toBe(true);
    expect(readBack.safeParse({}).success).toBe(false);
    expect(entryOf(model)).toBe(entryOf(model));
    expect(JSON.parse(JSON.stringify(entryOf(model)))).toEqual(entryOf(model));
  });
});

const member = (value: unknown, key: string): unknown => (value as Record<string, unknown>)[key];

/** Every text and list has an end, and so has whatever is paid for. */
function unbounded(schema: unknown, path = ""): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const node = schema as Record<string, unknown>;
  const open =
    (node["type"] === "string" && node["maxLength"] === undefined && node["enum"] === undefined) ||
    (node["type"] === "array" && node["maxItems"] === undefined) ||
    (/(duration|max_tokens|width|height)$/.test(path) && !node["enum"] && !(Number(node["maximum"]) <= 131_072));
  const parts = { ...(node["properties"] ?? {}), ...(node["items"] ? { "[]": node["items"] } : {}) };
  return [
    ...(open ? [path] : []),
    ...Object.entries(parts).flatMap(([key, part]) => unbounded(part, `${path}.${key}`)),
  ];
}
