// What is counted of a stream that its caller cuts: never less than what the caller had by then.
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CalledModel } from "../../../src/gateway/jobs/called-model.ts";
import { readEvent } from "../../../src/gateway/jobs/event-usage.ts";
import { GuardedEvents } from "../../../src/gateway/jobs/guarded-events.ts";
import { StreamUsage } from "../../../src/gateway/jobs/stream-usage.ts";
import { SecretSearch } from "../../../src/json/secret-search.ts";
import { findModel } from "../../../src/models/index.ts";

const model = findModel("gpt-oss-120b");
const target: CalledModel = { name: "gpt-oss-120b", model, maxMicroUsd: model?.maxPrice ?? 0 };
const event = `data: ${JSON.stringify({ id: "x".repeat(160), choices: [{ index: 0, delta: { content: "w" } }] })}\n\n`;
const priceOf = (pieces: number) => Number(model?.tokens?.cost(0, pieces));

/** A stream whose client leaves after so many events, and how many of them the client had got by then. */
async function cutAfter(count: number, everyMs: number): Promise<{ stream: StreamUsage; taken: number }> {
  const leaving = new AbortController();
  const encoded = new TextEncoder().encode(event);
  const waited = new Promise((resolve) => setTimeout(resolve, 100));
  let sent = 0;
  const source = new ReadableStream({
    type: "bytes",
    pull(controller) {
      if (sent === count) {
        leaving.abort();
        return waited.then(() => controller.enqueue(encoded.slice()));
      }
      sent += 1;
      vi.setSystemTime(Date.now() + everyMs);
      controller.enqueue(encoded.slice());
      return undefined;
    },
  });
  const stream = new StreamUsage(1024 * 1024);
  const events = new GuardedEvents(source, new SecretSearch([]), leaving.signal);
  const read = events.read(stream);
  let takenBytes = 0;
  const client = new WritableStream<Uint8Array>({
    write: (piece) => {
      takenBytes += piece.byteLength;
    },
  });
  await events.client.pipeTo(client).catch(() => {});
  await read;
  return { stream, taken: takenBytes / encoded.byteLength };
}

describe("an event", () => {
  it("holds as much text however it is written, and says its cost", () => {
    const around = fc.record({ id: fc.string(), usage: fc.constant(null) }, { requiredKeys: [] });
    const said = fc.option(fc.record({ cost: fc.double({ min: 0, max: 1, noNaN: true }) }), { nil: {} });
    fc.assert(
      fc.property(around, fc.string({ unit: "binary" }), said, (head, content, tail) => {
        const value = {
          ...head,
          choices: [{ index: 0, delta: { role: "assistant", content }, logprobs: null }],
          ...tail,
        };
        const textBytes = new TextEncoder().encode(content).length;
        for (const text of [JSON.stringify(value), JSON.stringify(value, null, 1)]) {
          expect(readEvent(text)).toEqual({ textBytes, said: "cost" in tail ? value : undefined });
        }
      }),
      { numRuns: 500 },
    );
  });

  it("holds all of its text, under whatever name", () => {
    const text = "x".repeat(500);
    const chunk = (more: object) => JSON.stringify({ choices: [{ text, delta: { content: "" }, ...more }] });
    expect(readEvent(chunk({})).textBytes).toBe(500);
    expect(readEvent(chunk({ finish_reason: "stop" })).textBytes).toBe(500);
  });
});

it.each(["x", "é", "字", "😀"])("a line too long to be read counts as its bytes, of %s too", (character) => {
  const text = character.repeat(1_000_000 / character.length);
  const bytes = new TextEncoder().encode(`data: {"choices":[{"delta":{"content":"${text}"}}]}\n\n`);
  const seen = new StreamUsage();
  for (let at = 0; at < bytes.length; at += 1000) seen.take(bytes.subarray(at, at + 1000));
  seen.end();
  expect(seen.bill(target, 0).assumedMicroUsd).toBeGreaterThanOrEqual(priceOf(Math.ceil(bytes.length / 4) - 20));
  expect(seen.bill(target, 0).assumedMicroUsd).toBeLessThanOrEqual(priceOf(Math.ceil(bytes.length / 4)));
});

describe.each([
  ["fast", 0],
  ["slow", 5],
])("a %s stream that is cut", (_, everyMs) => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterEach(() => void vi.useRealTimers());

  it.each([1, 5, 50, 74, 75, 76, 80, 100, 300, 1000])(
    "after %d events counts each that its client got",
    async (count) => {
      const { stream, taken } = await cutAfter(count, everyMs);
      const { costMicroUsd, assumedMicroUsd = 0 } = stream.bill(target, 0);
      expect(taken).toBeGreaterThan(0.75 * count);
      expect(costMicroUsd).toBeNull();
      expect(assumedMicroUsd).toBeGreaterThanOrEqual(priceOf(Math.floor(taken)));
      expect(assumedMicroUsd).toBeLessThanOrEqual(priceOf(Math.ceil(count * 1.15) + 1));
      expect(stream.kept()).toBeUndefined();
    },
  );

  it("by a client that took most of it while nothing was read counts all that it took", async () => {
    const leaving = new AbortController();
    const source = new ReadableStream({
      type: "bytes",
      pull(controller) {
        vi.setSystemTime(Date.now() + everyMs);
        controller.enqueue(new TextEncoder().encode(event));
      },
    });
    const seen = new StreamUsage();
    const events = new GuardedEvents(source, new SecretSearch([]), leaving.signal);
    const read = events.read(seen);
    let taken = 0;
    for await (const piece of events.client) {
      taken += piece.byteLength;
      if (taken > 2_000_000) break;
    }
    leaving.abort();
    await read;
    const least = priceOf(Math.floor(taken / event.length));
    const { assumedMicroUsd = 0 } = seen.bill(target, 0);
    expect(assumedMicroUsd).toBeGreaterThanOrEqual(least);
    expect(assumedMicroUsd).toBeLessThan(1.1 * least);
  });

  it("in front of the total, after counts of one choice each, counts all of its text", () => {
    const seen = new StreamUsage();
    const chunk = JSON.stringify({
      choices: [{ delta: { content: "word" } }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    });
    for (let count = 0; count < 500; count++) seen.take(new TextEncoder().encode(`data: ${chunk}\n\n`));
    seen.cut(0);
    expect(seen.bill(target, 0).costMicroUsd).toBeNull();
    expect(seen.bill(target, 0).assumedMicroUsd).toBeGreaterThanOrEqual(priceOf(500));
  });

  it("and ended by itself is kept, as long as it is not too large", () => {
    const read = (keepBytes: number) => {
      const seen = new StreamUsage(keepBytes);
      for (let turn = 0; turn < 3; turn++) seen.take(new TextEncoder().encode(event));
      seen.end();
      return seen.kept();
    };
    expect(new TextDecoder().decode(read(10_000))).toBe(event.repeat(3));
    expect(read(100)).toBeUndefined();
  });
});
