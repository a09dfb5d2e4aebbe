// An event that is read as it passes says what it says when it is read as a whole.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CalledModel } from "../../../src/gateway/jobs/called-model.ts";
import { type EventUsage, readEvent } from "../../../src/gateway/jobs/event-usage.ts";
import { LongEvent } from "../../../src/gateway/jobs/long-event.ts";
import { StreamUsage } from "../../../src/gateway/jobs/stream-usage.ts";
import { findModel } from "../../../src/models/index.ts";

const encoder = new TextEncoder();

function read(text: string | Uint8Array, pieceBytes: number): EventUsage {
  const bytes = typeof text === "string" ? encoder.encode(text) : text;
  const event = new LongEvent();
  for (let at = 0; at < bytes.length; at += pieceBytes) event.take(bytes.slice(at, at + pieceBytes));
  return event.end();
}

function saidOf({ said }: EventUsage): unknown {
  return said && [said["cost"] ?? null, said["usage"] ?? null];
}

/** Strings that are written without escapes. */
const plain = fc.string({ unit: fc.constantFrom("a", "é", "字", "😀", " "), maxLength: 40 });
const labels = ["id", "role", "type", "usage", "logprobs", "cost", "choices", "content"];
const name = fc.oneof(fc.constantFrom(...labels), plain);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5 },
    plain,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(null, true, false),
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(name, tie("tree"), { maxKeys: 5 }),
  ),
}));

/** A cost is none where it is an object. */
const scalar = fc.oneof(plain, fc.constant(null), fc.double({ noNaN: true, noDefaultInfinity: true }));
const event = fc
  .tuple(fc.dictionary(name, tree, { maxKeys: 8 }), fc.record({ cost: scalar }, { requiredKeys: [] }))
  .map(([{ cost: _, ...members }, cost]) => ({ ...members, ...cost }));

describe("a long event", () => {
  it("is read as a short one is, wherever it is cut", () => {
    const pieceBytes = fc.integer({ min: 1, max: 200 });
    fc.assert(
      fc.property(event, pieceBytes, fc.boolean(), (members, size, isWide) => {
        const text = ` ${JSON.stringify(members, null, isWide ? 1 : 0)} \r`;
        const short = readEvent(text.trim());
        const long = read(text, size);
        expect(long.textBytes).toBe(short.textBytes);
        expect(saidOf(long)).toEqual(saidOf(short));
      }),
      { numRuns: 1000 },
    );
  });

  it("counts escapes as they are written", () => {
    expect(read('{"choices":[{"delta":{"content":"\\n\\u00e9"}}]}', 7).textBytes).toBe(8);
  });

  it.each([
    ["a list", '["word"]'],
    ["no JSON", '{"choices":[{"text":"word"}],}'],
    ["cut off", '{"choices":[{"text":"word"}]'],
    ["a comment", ": word"],
    ["two values", '{"cost":1}{"cost":2}'],
  ])("that is %s is text as a whole", (_, text) => {
    for (const size of [1, 3, 100]) expect(read(text, size)).toEqual({ textBytes: text.length, said: undefined });
  });

  it("of which a name or the usage is no UTF-8 is text as a whole", () => {
    for (const text of ['{"usage":{"a":"\u00ff"}}', '{"\\u0061\u00ff":1}']) {
      const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
      expect(read(bytes, 100)).toEqual({ textBytes: bytes.length, said: undefined });
    }
  });

  it("says no usage that is long itself", () => {
    const usage = { completion_tokens: 5, more: "x".repeat(5000) };
    expect(read(JSON.stringify({ cost: 0.5, usage }), 1000).said).toEqual({ cost: 0.5 });
  });
});

describe("a stream with a long event", () => {
  const model = findModel("gpt-oss-120b");
  const target: CalledModel = { name: "gpt-oss-120b", model, maxMicroUsd: model?.maxPrice ?? 0 };
  const picture = "A".repeat(1_000_000);
  const chunk = (more: object) => `data: ${JSON.stringify({ choices: [{ delta: { picture } }], ...more })}\n\n`;

  function billOf(text: string, cutBytes?: number) {
    const bytes = encoder.encode(text);
    const seen = new StreamUsage();
    for (let at = 0; at < (cutBytes ?? bytes.length); at += 1000) seen.take(bytes.slice(at, at + 1000));
    if (cutBytes === undefined) seen.end();
    else seen.cut(0);
    return seen.bill(target, 0);
  }

  it("costs what that event says", () => {
    expect(billOf(chunk({ cost: 0.25 }))).toEqual({ costMicroUsd: 250_000 });
    const usage = { prompt_tokens: 0, completion_tokens: 7 };
    expect(billOf(chunk({ usage }))).toEqual({ costMicroUsd: model?.tokens?.cost(0, 7) });
  });

  it("goes on behind it", () => {
    const after = 'data: {"choices":[],"cost":0.5}\n\ndata: [DONE]\n\n';
    expect(billOf(chunk({ cost: 0.25 }) + after)).toEqual({ costMicroUsd: 500_000 });
    expect(billOf(`: ${picture}\n\n${after}`)).toEqual({ costMicroUsd: 500_000 });
  });

  it("and cut within it costs the text that had come", () => {
    const { costMicroUsd, assumedMicroUsd = 0 } = billOf(chunk({ cost: 0.25 }), 500_000);
    expect(costMicroUsd).toBeNull();
    expect(assumedMicroUsd).toBeGreaterThanOrEqual(Number(model?.tokens?.cost(0, 124_000)));
    expect(assumedMicroUsd).toBeLessThanOrEqual(Number(model?.tokens?.cost(0, 125_000)));
  });
});
