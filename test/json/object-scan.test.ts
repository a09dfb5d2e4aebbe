// A large object on its way upstream: the same verdict as JSON.parse, the same members, and the tail where it is wanted.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ObjectSummary, scanObject } from "../../src/json/object-scan.ts";
import { bytesOf, cutSource, drain } from "./cut-source.ts";

const tail = bytesOf(`,"more":[true]`);
const tailLength = tail.length + 3;

async function relay(text: string, sizes: readonly number[], isWanted: (summary: ObjectSummary) => boolean) {
  const bytes = bytesOf(text);
  const { source } = cutSource(bytes, sizes);
  const { stream, done } = scanObject<string>({
    source,
    length: bytes.length,
    limitBytes: 1024 * 1024,
    bufferBytes: 64 * 1024,
    tail: {
      name: "more",
      length: tailLength,
      member: (summary) => (isWanted(summary) ? tail : undefined),
    },
    verdict: () => undefined,
  });
  const [outcome, sent] = await Promise.all([done, drain(stream)]);
  return { outcome, sent: new TextDecoder().decode(sent.bytes), complete: sent.complete };
}

describe("a large object", () => {
  it("has its members read, and its tail put behind them, wherever it is cut and however it is blank", async () => {
    const names = fc.string({ minLength: 1 }).filter((name) => name !== "more");
    const objects = fc.dictionary(names, fc.jsonValue(), { minKeys: 1, maxKeys: 6 });
    const space = fc.constantFrom("", " ", "\n\t ");
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(objects, space, space, sizes, fc.boolean(), async (value, before, after, cuts, isWanted) => {
        const text = `${before}${JSON.stringify(value, null, before.length)}${after}`;
        const { outcome, sent, complete } = await relay(text, cuts, () => isWanted);
        expect([outcome.accepted, complete]).toEqual([true, true]);
        expect(JSON.parse(sent)).toEqual(JSON.parse(isWanted ? text.replace(/\}\s*$/, `,"more":[true]}`) : text));
        expect(sent).toHaveLength(text.length + tailLength);
        if (!outcome.accepted) return;
        const read = [...outcome.summary.members].map(([name, member]) => [name, member.value]);
        expect(Object.fromEntries(read)).toEqual(JSON.parse(text));
      }),
      { numRuns: 200 },
    );
  });

  it.each([`"more"`, `"m\\u006fre"`, `"\\u006d\\u006f\\u0072\\u0065"`])(
    "loses its own member of the tail's name, however it is spelled: %s",
    async (name) => {
      for (const text of [`{${name}:1,"a":2}`, `{"a":2,${name}:1}`, `{"a":2,${name} :{"more":3}}`]) {
        for (const isWanted of [true, false]) {
          const { outcome, sent } = await relay(text, [3, 7], () => isWanted);
          const { a, more } = JSON.parse(sent) as { a: number; more?: unknown };
          expect([a, more, sent.length]).toEqual([2, isWanted ? [true] : undefined, text.length + tailLength]);
          expect(sent.match(/"(m|\\u006d)(o|\\u006f)(r|\\u0072)(e|\\u0065)"(?=\s*:[^3])/g) ?? []).toHaveLength(
            isWanted ? 1 : 0,
          );
          expect(outcome.accepted && outcome.summary.members.has("more")).toBe(true);
        }
      }
    },
  );

  it.each([
    ["a list", "[1,2]", "no-object"],
    ["a member twice", `{"a":1,"\\u0061":2}`, "repeated"],
    [
      "too many members",
      JSON.stringify(Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [at, 1]))),
      "too-many-members",
    ],
    [
      "too much in small members",
      JSON.stringify(Object.fromEntries(Array.from({ length: 40 }, (_, at) => [at, "x".repeat(3000)]))),
      "too-many-members",
    ],
    ["no end", `{"a":1`, "not-json"],
  ])("that is %s is cut off", async (_name, text, fault) => {
    const { outcome, complete } = await relay(text, [1000], () => true);
    expect(outcome).toEqual({ accepted: false, fault });
    expect(complete).toBe(false);
  });

  it("tells of a member that is too large to be read", async () => {
    const { outcome } = await relay(JSON.stringify({ n: 5, long: "x".repeat(5000) }), [700], () => false);
    expect(outcome.accepted && [...outcome.summary.members]).toEqual([
      ["n", { kind: "number", value: 5 }],
      ["long", { kind: "string" }],
    ]);
  });
});
