// Bodies held whole, and real streams through the relay: limits, breaks on either side, and how much is held.
import { describe, expect, it } from "vitest";
import { parseJson, readHead, readWhole } from "../../src/http/body.ts";
import { statedLength } from "../../src/json/byte-reader.ts";
import { scanRequest } from "../../src/json/request-scan.ts";
import { bytesOf, drain } from "../json/cut-source.ts";

const KiB = 1024;

/** A native stream of so many bytes; `fed` tells how many were taken from it. */
function feed(chunks: Iterable<Uint8Array>, breaks = false) {
  const { readable, writable } = new IdentityTransformStream();
  const state = { fed: 0, stopped: false };
  const feeding = (async () => {
    const writer = writable.getWriter();
    try {
      for (const chunk of chunks) {
        await writer.write(chunk);
        state.fed += chunk.length;
      }
      await (breaks ? writer.abort(new Error("left")) : writer.close());
    } catch {
      state.stopped = true;
    }
  })();
  return { readable, state, feeding };
}

function* repeated(head: string, piece: string, count: number, tail: string): Generator<Uint8Array> {
  yield bytesOf(head);
  const bytes = bytesOf(piece);
  for (let i = 0; i < count; i++) yield bytes;
  yield bytesOf(tail);
}

const stating = (length: number) => ({ headers: { "Content-Length": String(length) } });

describe("a body held whole", () => {
  it.each([0, 1, 99, 100])("of %i bytes is read up to the limit", async (size) => {
    const bytes = new Uint8Array(size).fill(7);
    expect(await readWhole(new Response(bytes, stating(size)), 100)).toEqual({ bytes });
    expect(
      await readWhole(new Response(feed([bytes.slice(0, 40), bytes.slice(40)].filter((b) => b.length)).readable), 100),
    ).toEqual({
      bytes,
    });
  });

  it("grows past its first buffer", async () => {
    const pieces = Array.from({ length: 100 }, (_, i) => new Uint8Array(1000).fill(i));
    const whole = await readWhole(new Response(feed(pieces).readable), 256 * KiB);
    expect("bytes" in whole && whole.bytes.length).toBe(100_000);
    expect("bytes" in whole && whole.bytes[99_999]).toBe(99);
  });

  it.each([1, 12_345, 262_145, 1_000_001, 3_900_001])("of %i bytes is whole, whatever its pieces are", async (size) => {
    const bytes = Uint8Array.from({ length: size }, (_, at) => at % 251);
    const whole = await readWhole(new Response(bytes), 4 * 1024 * KiB);
    expect("bytes" in whole && Buffer.from(whole.bytes).equals(Buffer.from(bytes))).toBe(true);
  });

  it("is refused by its stated length, or as it flows", async () => {
    expect(await readWhole(new Response(new Uint8Array(101), stating(101)), 100)).toEqual({ fault: "too-large" });
    const { readable, state, feeding } = feed(repeated("", "x".repeat(100), 1000, ""));
    expect(await readWhole(new Response(readable), 1000)).toEqual({ fault: "too-large" });
    await feeding;
    expect(state).toMatchObject({ stopped: true });
    expect(state.fed).toBeLessThan(20_000);
  });

  it("that breaks off is told", async () => {
    expect(await readWhole(new Response(feed([bytesOf("{")], true).readable), 100)).toEqual({ fault: "source-gone" });
  });

  it("that is absent is empty", async () => {
    expect(await readWhole(new Response(null), 100)).toEqual({ bytes: new Uint8Array(0) });
  });

  it("is JSON, or is told what it is not", () => {
    expect(parseJson(bytesOf('{"a":1}'))).toEqual({ value: { a: 1 } });
    expect(parseJson(bytesOf('\ufeff{"a":1}'))).toEqual({ fault: "not-json" });
    expect(parseJson(bytesOf(""))).toEqual({ fault: "not-json" });
    expect(parseJson(new Uint8Array([0x22, 0xff, 0x22]))).toEqual({ fault: "not-json" });
  });

  it.each([
    ["7", 7],
    ["0", 0],
    ["-1", undefined],
    ["1e3", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("states its length as %s", (stated, length) => {
    expect(statedLength(new Headers(stated === undefined ? {} : { "content-length": stated }))).toBe(length);
  });
});

describe("a body too large to hold", () => {
  const inject = bytesOf('"webhook":"h",');
  const limits = { limitBytes: 64 * 1024 * KiB, inject, verdict: () => undefined };

  it("goes on from where the head was read", async () => {
    const text = `{"input":{"a":"${"x".repeat(300 * KiB)}","seed":5}}`;
    const { readable } = feed([bytesOf(text.slice(0, 290 * KiB)), bytesOf(text.slice(290 * KiB))]);
    const head = await readHead(new Response(readable), 256 * KiB);
    if (!("ended" in head) || head.ended) return expect.fail("it is larger than that");
    const { stream, done } = scanRequest({ ...limits, source: head });
    const [sent, outcome] = await Promise.all([drain(stream), done]);
    expect(outcome.accepted && outcome.summary.input.get("seed")?.value).toBe(5);
    expect(new TextDecoder().decode(sent.bytes)).toBe(text.replace("{", '{"webhook":"h",'));
  });

  it("goes on from a head that is not all that was read", async () => {
    const text = `{"input":{"a":"${"x".repeat(300 * KiB)}","seed":5}}`;
    const { readable } = feed([bytesOf(`\ufeff${text}`)]);
    const head = await readHead(new Response(readable), 256 * KiB);
    if (!("ended" in head) || head.ended) return expect.fail("it is larger than that");
    const source = { head: head.head.subarray(3), reader: head.reader };
    const { stream, done } = scanRequest({ ...limits, source });
    const [sent, outcome] = await Promise.all([drain(stream), done]);
    expect(outcome.accepted && outcome.summary.input.get("seed")?.value).toBe(5);
    expect(new TextDecoder().decode(sent.bytes)).toBe(text.replace("{", '{"webhook":"h",'));
  });

  it("keeps the length that was stated", async () => {
    const text = `{"input":{"a":"${"x".repeat(600 * KiB)}"}}`;
    const { stream, done } = scanRequest({ ...limits, source: feed([bytesOf(text)]).readable, length: text.length });
    const [sent, outcome] = await Promise.all([drain(stream), done]);
    expect(outcome.accepted && sent.bytes.length).toBe(text.length + inject.length);
  });

  it("is never held: what was taken in and not passed on fits the buffer", async () => {
    const piece = "x".repeat(16 * KiB);
    const { readable, state, feeding } = feed(repeated('{"input":{"a":"', piece, 2000, '"}}'));
    const { stream, done } = scanRequest({ ...limits, source: readable, bufferBytes: 128 * KiB });
    let passed = 0;
    let most = 0;
    for await (const chunk of stream) {
      passed += chunk.length;
      most = Math.max(most, state.fed - passed);
      if (passed % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    }
    await feeding;
    expect((await done).accepted).toBe(true);
    expect(passed).toBe(state.fed + inject.length);
    expect(most).toBeLessThanOrEqual(128 * KiB);
  });

  it("waits for a reader that does not read", async () => {
    const { readable, state } = feed(repeated('{"input":{"a":"', "x".repeat(16 * KiB), 100, '"}}'));
    const { stream, done } = scanRequest({ ...limits, source: readable, bufferBytes: 64 * KiB });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(state.fed).toBeLessThanOrEqual(64 * KiB);
    await stream.cancel();
    expect(await done).toEqual({ accepted: false, fault: "sink-gone" });
  });

  it("is no longer taken in when the upstream stops reading", async () => {
    const { readable, state, feeding } = feed(repeated('{"input":{"a":"', "x".repeat(16 * KiB), 1000, '"}}'));
    const { stream, done } = scanRequest({ ...limits, source: readable, bufferBytes: 64 * KiB });
    const reader = stream.getReader();
    await reader.read();
    await reader.cancel();
    expect(await done).toEqual({ accepted: false, fault: "sink-gone" });
    await feeding;
    expect(state).toMatchObject({ stopped: true });
  });

  it("that the client breaks off is never complete", async () => {
    for (const length of [undefined, 100]) {
      const { readable } = feed([bytesOf('{"input":{}}')], true);
      const { stream, done } = scanRequest({ ...limits, source: readable, length });
      const [sent, outcome] = await Promise.all([drain(stream), done]);
      expect(outcome).toEqual({ accepted: false, fault: "source-gone" });
      expect(sent.complete).toBe(false);
    }
  });

  it("that is shorter or longer than stated is never complete", async () => {
    for (const length of [10, 14]) {
      const { stream, done } = scanRequest({ ...limits, source: feed([bytesOf('{"input":{}}')]).readable, length });
      const [sent, outcome] = await Promise.all([drain(stream), done]);
      expect(outcome.accepted).toBe(false);
      expect(sent.complete).toBe(false);
    }
  });
});
