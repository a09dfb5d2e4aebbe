// An event that is read as it passes says what it says when it is read as a whole.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CalledModel } from "../../../src/gateway/jobs/called-model.ts";
import { type EventUsage, readEvent } from "../../../src/gateway/jobs/event-usage.ts";
import { LongEvent } from "../../../src/gateway/jobs/long-event.ts";
import { type Bill, StreamUsage } from "../../../src/gateway/jobs/stream-usage.ts";
import { findModel } from "../../../src/models/index.ts";

const encoder = new TextEncoder();
const model = findModel("gpt-oss-120b");
const target: CalledModel = { name: "gpt-oss-120b", model, maxMicroUsd: model?.maxPrice ?? 0 };
const priceOf = (tokens: number) => Number(model?.tokens?.cost(0, tokens));

/** Each piece is another's again once it was taken. */
function feed(reader: { take(piece: Uint8Array): void }, text: string | Uint8Array, pieceBytes: number): void {
  const bytes = typeof text === "string" ? encoder.encode(text) : text;
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const piece = bytes.slice(at, at + pieceBytes);
    reader.take(piece);
    piece.fill(0);
  }
}

function read(text: string | Uint8Array, pieceBytes: number): EventUsage {
  const event = new LongEvent();
  feed(event, text, pieceBytes);
  return event.end();
}

function billOf(stream: string, pieceBytes: number, isCut = false): Bill {
  const seen = new StreamUsage();
  feed(seen, stream, pieceBytes);
  if (isCut) seen.cut(0);
  else seen.end();
  return seen.bill(target, 0);
}

/** Strings that are written without escapes. */
const plain = fc.string({ unit: fc.constantFrom("a", "é", "字", " "), maxLength: 40 });
const name = fc.oneof(
  fc.constantFrom("id", "role", "type", "usage", "logprobs", "cost", "choices", "content", "completion_tokens"),
  plain,
);
const scalar = fc.oneof(plain, fc.nat(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant(null));
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5 },
    scalar,
    fc.boolean(),
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(name, tie("tree"), { maxKeys: 5 }),
  ),
}));
const event = fc.dictionary(name, tree, { maxKeys: 8 });
const pieceBytes = fc.integer({ min: 1, max: 200 });

const saidOf = ({ said }: EventUsage) => said && [model?.costOf(said, {}) ?? null, said["usage"] ?? null];

describe("a long event", () => {
  it("is read as a short one is, wherever it is cut", () => {
    fc.assert(
      fc.property(event, pieceBytes, fc.boolean(), (members, length, isWide) => {
        const text = ` ${JSON.stringify(members, null, isWide ? 1 : 0)} \r`;
        const [long, short] = [read(text, length), readEvent(text.trim())];
        expect(long.textBytes).toBe(short.textBytes);
        expect(saidOf(long)).toEqual(saidOf(short));
      }),
      { numRuns: 1000 },
    );
  });

  it("says the last of what it says twice, and counts no less text", () => {
    const twice = fc.constantFrom("cost", "usage", "choices");
    fc.assert(
      fc.property(fc.array(fc.tuple(twice, tree), { maxLength: 6 }), pieceBytes, (members, length) => {
        const text = `{${members.map(([name, value]) => `"${name}":${JSON.stringify(value)}`).join(",")}}`;
        const [long, short] = [read(text, length), readEvent(text)];
        expect(long.textBytes).toBeGreaterThanOrEqual(short.textBytes);
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
    ["wrong far within a string", `{"choices":[{"text":"${"x".repeat(10_000)}\\x"}],"cost":0}`],
    ["cut off", '{"choices":[{"text":"word"}]'],
    ["two values", '{"cost":1}{"cost":2}'],
  ])("that is %s is text as a whole", (_, text) => {
    for (const length of [1, 3, 100]) expect(read(text, length)).toEqual({ textBytes: text.length, said: undefined });
  });

  it("that is no UTF-8 is text as a whole, wherever that shows", () => {
    for (const text of [
      '{"usage":{"a":"\u00ff"}}',
      '{"\\u0061\u00ff":1,"cost":1}',
      '{"choices":[{"text":"\u00ff"}],"cost":1}',
      '{"cost":1}\u00ff',
    ]) {
      const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
      for (const length of [1, 100]) expect(read(bytes, length)).toEqual({ textBytes: bytes.length, said: undefined });
    }
  });

  it("says no usage that is long itself", () => {
    const usage = { completion_tokens: 5, more: "x".repeat(5000) };
    expect(read(JSON.stringify({ choices: [], usage }), 1000)).toEqual({ textBytes: 0, said: undefined });
  });
});

describe("a stream with long lines", () => {
  const picture = "A".repeat(1_000_000);
  const chunk = (more: object) => `data: ${JSON.stringify({ choices: [{ delta: { picture } }], ...more })}\n\n`;

  it("costs the same however it is cut", () => {
    const long = fc
      .tuple(fc.constantFrom("a", "é", "字", "😀"), fc.integer({ min: 5_000, max: 40_000 }))
      .map(([character, count]) => character.repeat(count));
    const said = fc.constantFrom(
      {},
      { usage: null },
      { cost: 0.00001 },
      { usage: { completion_tokens: 3 } },
      { cost: "free", usage: { completion_tokens: 3 } },
    );
    const line = fc.oneof(
      fc.tuple(long, said).map(([content, more]) => `data: ${JSON.stringify({ choices: [{ content }], ...more })}`),
      fc.tuple(long, said).map(([content, more]) => `data:${JSON.stringify({ ...more, choices: [], content })}\r`),
      fc.tuple(long, said).map(([id, more]) => `data:${JSON.stringify({ id, ...more, error: "é" })}`),
      long.map((text) => `data: {"choices":[{"text":"${text}\u0001"}],"cost":0}`),
      long.map((text) => `: ${text}`),
      long.map((pad) => JSON.stringify({ cost: 0, pad })),
      fc.constant("data: [DONE]"),
    );
    const lines = fc.array(line, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(lines, fc.integer({ min: 500, max: 40_000 }), (drawn, size) => {
        const stream = `${drawn.join("\n\n")}\n`;
        const [cut, whole] = [billOf(stream, size), billOf(stream, 4 * stream.length)];
        expect(cut.costMicroUsd).toBe(whole.costMicroUsd);
        // The blanks around a broken event are text.
        const { assumedMicroUsd = 0 } = whole;
        expect(cut.assumedMicroUsd ?? 0).toBeGreaterThanOrEqual(assumedMicroUsd);
        expect(cut.assumedMicroUsd ?? 0).toBeLessThanOrEqual(assumedMicroUsd + priceOf(drawn.length));
      }),
      { numRuns: 200 },
    );
  });

  it("costs what a long event says", () => {
    expect(billOf(chunk({ cost: 0.25 }), 1000)).toEqual({ costMicroUsd: 250_000 });
    expect(billOf(chunk({ usage: { prompt_tokens: 0, completion_tokens: 7 } }), 1000)).toEqual({
      costMicroUsd: priceOf(7),
    });
  });

  it("costs what its last line says, also where that has no end", () => {
    expect(billOf('data: {"choices":[],"cost":0.5}', 10)).toEqual({ costMicroUsd: 500_000 });
    expect(billOf(chunk({ cost: 0.25 }).trimEnd(), 1000)).toEqual({ costMicroUsd: 250_000 });
  });

  it("and cut within an event costs the text that had come", () => {
    const { costMicroUsd, assumedMicroUsd } = billOf(chunk({ cost: 0.25 }).slice(0, 500_000), 1000, true);
    expect(costMicroUsd).toBeNull();
    expect(assumedMicroUsd).toBeGreaterThanOrEqual(priceOf(124_000));
    expect(assumedMicroUsd).toBeLessThanOrEqual(priceOf(125_000));
  });
});
