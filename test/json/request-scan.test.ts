// A large request on its way upstream: same verdict as JSON.parse and the shape rule, same request but for the webhook.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type RequestOutcome, type RequestSummary, scanRequest } from "../../src/json/request-scan.ts";
import { utf8 } from "../../src/json/utf8-text.ts";
import { amount } from "../support/amount.ts";
import { bytesOf, cutSource, drain } from "./cut-source.ts";
import { cuts, jsonBytes } from "./json-text.ts";

const HOOK = "https://gateway.example/hooks/1";
const inject = bytesOf(`"webhook":${JSON.stringify(HOOK)},`);
const MiB = 1024 * 1024;

interface Options {
  sizes?: readonly number[];
  chunked?: boolean;
  limitBytes?: number;
  bufferBytes?: number;
  /** Some member of `input` is too long to be read. */
  long?: boolean;
  verdict?: (summary: RequestSummary) => string | undefined | Promise<string | undefined>;
}

async function relay(bytes: Uint8Array, options: Options = {}) {
  const { source, log } = cutSource(bytes, options.sizes ?? [bytes.length]);
  const { stream, done } = scanRequest<string>({
    source,
    length: options.chunked ? undefined : bytes.length,
    limitBytes: options.limitBytes ?? MiB,
    inject,
    bufferBytes: options.bufferBytes ?? 64 * 1024,
    verdict: options.verdict ?? (() => undefined),
  });
  const [outcome, sent] = await Promise.all([done, drain(stream)]);
  return { outcome, sent, log };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What the whole-body path says of the same bytes. */
function reference(bytes: Uint8Array): { verdict: string; job: Record<string, unknown> } {
  try {
    const job: unknown = JSON.parse(utf8().decode(bytes));
    if (!isObject(job) || !isObject(job["input"])) return { verdict: "no-input", job: {} };
    return { verdict: "accepted", job };
  } catch {
    return { verdict: "not-json", job: {} };
  }
}

const verdictOf = (outcome: RequestOutcome<string>): string => (outcome.accepted ? "accepted" : outcome.fault);

/** The job without its webhook and without the key that a webhook is turned into. */
const bare = (job: Record<string, unknown>): string =>
  JSON.stringify(Object.entries(job).filter(([name]) => !/^webhoo[kl]$/i.test(name)));

async function expectSameVerdict(bytes: Uint8Array, options: Options = {}): Promise<void> {
  const { verdict, job } = reference(bytes);
  const { outcome, sent } = await relay(bytes, options);
  // A shape that is already wrong is told before what is broken further on.
  if (verdict === "not-json") expect(["not-json", "no-input"]).toContain(verdictOf(outcome));
  else expect(verdictOf(outcome)).toBe(verdict);
  expect(sent.complete).toBe(verdict === "accepted");
  if (!outcome.accepted) {
    expect(new TextDecoder().decode(sent.bytes)).not.toMatch(/,\s*\}\s*$/);
    expect(sent.bytes.length).toBeLessThan(bytes.length + inject.length);
    return;
  }
  expect(sent.bytes.length).toBe(bytes.length + inject.length);
  const relayed = JSON.parse(utf8().decode(sent.bytes));
  expect(relayed.webhook).toBe(HOOK);
  expect(bare(relayed)).toBe(bare(job));
  const { input, isRepeated: _, ...outer } = outcome.summary;
  const told = ["policy", "webhook", "s3Config"].filter((name) => Object.hasOwn(job, name));
  expect(outer).toEqual(Object.fromEntries(told.map((name) => [name, job[name]])));
  if (options.long) return;
  expect(Object.fromEntries(Array.from(input, ([name, member]) => [name, member.value]))).toEqual(job["input"]);
}

const rows: [string, string][] = [
  ["a plain job", '{"input":{"prompt":"a cat","width":512}}'],
  ["an empty input", '{"input":{}}'],
  ["an empty object", "{}"],
  ["an empty object with blanks", " { \n } \n"],
  ["no input", '{"policy":{}}'],
  ["an input that is a string", '{"input":"{}"}'],
  ["an input that is null", '{"input":null}'],
  ["an input that is an array", '{"input":[{}]}'],
  ["two inputs, the last one good", '{"input":"x","input":{"a":1}}'],
  ["two inputs, the last one bad", '{"input":{"a":1},"input":"x"}'],
  ["two inputs, the first one forgotten", '{"input":{"a":1,"b":2},"input":{"b":3}}'],
  ["an escaped input", '{"\\u0069n\\u0070ut":{"a":1}}'],
  ["a repeated member of input", '{"input":{"a":1,"a":"x","\\u0061":[2]}}'],
  ["an input further down", '{"x":{"input":{}}}'],
  ["a webhook before input", '{"webhook":"https://a.example","input":{}}'],
  ["a webhook after input", '{"input":{},"webhook":"https://a.example"}'],
  ["a webhook inside input", '{"input":{"webhook":"https://a.example"}}'],
  ["webhooks before, inside and after", '{"webhook":1,"input":{"webhook":{"webhook":2}},"webhook":"last"}'],
  ["a webhook deeper", '{"s3Config":{"webhook":"x"},"input":{"a":[{"webhook":"y"}]}}'],
  ["an escaped webhook", '{"\\u0077ebhook":"x","input":{}}'],
  ["a webhook whose last letter is escaped", '{"webhoo\\u006b":"x","input":{}}'],
  ["a webhook whose last letter is escaped in capitals", '{"webhoo\\u006B":"x","input":{}}'],
  ["a webhook all escaped", '{"input":{},"\\u0077\\u0065\\u0062\\u0068\\u006f\\u006F\\u006b":null}'],
  ["a webhook that is an object", '{"input":{},"webhook":{"a":["}"]}}'],
  ["keys like webhook", '{"webhookV2":1,"Webhook":2,"webhoo":3,"webhoo\\\\k":4,"webhook ":5,"input":{}}'],
  ["__proto__", '{"__proto__":{"input":{}},"input":{"__proto__":{"a":1}}}'],
  ["only __proto__", '{"__proto__":{"input":{}}}'],
  ["a byte order mark", '\ufeff{"input":{}}'],
  ["a top-level array", '[{"input":{}}]'],
  ["a top-level string", '"input"'],
  ["nothing", ""],
  ["blanks", " \n"],
  ["a second value", '{"input":{}}{"input":{}}'],
  ["a trailing comma", '{"input":{},}'],
  ["a leading comma", '{,"input":{}}'],
  ["trailing blanks", '{"input":{}} \r\n\t '],
  ["trailing garbage", '{"input":{}}x'],
  ["an unclosed object", '{"input":{}'],
  ["a policy", '{"input":{},"policy":{"ttl":10000,"lowPriority":true},"policy":{"ttl":1}}'],
  ["policy in pieces", ' {\n "policy" :\t{ "executionTimeout" : 5000 } ,\n "input" : { } }\n'],
  ["unknown members", '{"timeout":1,"s3Config":{"objectPath":"x"},"input":{"openai_route":"/v1"},"id":"x"}'],
];

describe("a large request", () => {
  it.each(rows)("with %s gets JSON.parse's verdict, wherever it is cut", async (_, text) => {
    const bytes = bytesOf(text);
    await expectSameVerdict(bytes);
    await expectSameVerdict(bytes, { sizes: [1], chunked: true });
    for (let first = 1; first < bytes.length; first++)
      await expectSameVerdict(bytes, { sizes: [first, bytes.length], chunked: first % 2 === 0 });
  });

  it("can be cut in two places, anywhere", async () => {
    const bytes = bytesOf('{"webhoo\\u006b":"w","input":{"a":-1.5e3,"é":"\\n"},"policy":{}}');
    for (let first = 1; first < bytes.length; first++)
      for (let second = 1; second < bytes.length - first; second++)
        await expectSameVerdict(bytes, { sizes: [first, second, bytes.length] });
  });

  it("gets JSON.parse's verdict whatever it is", async () => {
    await fc.assert(
      fc.asyncProperty(jsonBytes, cuts, fc.boolean(), (bytes, sizes, chunked) =>
        expectSameVerdict(bytes, { sizes, chunked }),
      ),
      { numRuns: amount(2000) },
    );
  }, 60_000);

  it("finds its way through long strings of any alphabet", async () => {
    const part = fc.constantFrom(
      "x".repeat(33_000),
      "é",
      "日本".repeat(6000),
      "😀",
      'say \\"hi\\"',
      "\\\\",
      "a".repeat(5000),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 12 }), cuts, fc.nat(3), async (parts, sizes, shift) => {
        const bytes = bytesOf(
          `{"input":{"a":"${"b".repeat(4100 + shift)}${parts.join("")}","webhook":"x"},"webhook":"y"}`,
        );
        await expectSameVerdict(bytes, { sizes: sizes.map((size) => size * 1500 + 1), long: true });
      }),
      { numRuns: amount(300) },
    );
  }, 60_000);

  it.each([
    ["an overlong slash", [0xc0, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a lone byte", [0xff]],
    ["half a character", [0xe6, 0x97]],
  ])("that is not UTF-8 (%s) is not JSON, in a long string too", async (_, junk) => {
    const [head, tail] = [bytesOf(`{"input":{"image":"${"x".repeat(9000)}`), bytesOf(`${"y".repeat(9000)}"}}`)];
    const bytes = new Uint8Array([...head, ...junk, ...tail]);
    await expectSameVerdict(bytes);
    await expectSameVerdict(bytes, { sizes: [head.length + 1, 5000] });
  });

  it("reads small members, and says of long ones what they are", async () => {
    const long = "x".repeat(5000);
    const text = JSON.stringify({
      input: { prompt: "a", image: long, rows: [long], deep: { long }, n: null, two: [1] },
    });
    const { outcome } = await relay(bytesOf(text), { sizes: [100] });
    expect(outcome.accepted && Object.fromEntries(outcome.summary.input)).toEqual({
      prompt: { kind: "string", bytes: 3, value: "a" },
      image: { kind: "string", bytes: 5002 },
      rows: { kind: "array", bytes: 5004 },
      deep: { kind: "object", bytes: 5011 },
      n: { kind: "null", bytes: 4, value: null },
      two: { kind: "array", bytes: 3, value: [1] },
    });
  });

  it("never keeps the first of two members when the last is out of bounds", async () => {
    const filler = Array.from({ length: 20 }, (_, i) => `"f${i}":"${"x".repeat(4000)}"`).join(",");
    const { outcome } = await relay(bytesOf(`{"input":{"width":64,${filler},"width":9999}}`));
    expect(outcome.accepted && outcome.summary.input.get("width")).toMatchObject({ kind: "number", bytes: 4 });
    expect(outcome.accepted && outcome.summary.input.get("width")?.value).not.toBe(64);
  });

  it.each([
    ["a policy over 16 KB", `{"input":{},"policy":{"a":"${"x".repeat(17_000)}"}}`, "member-too-large"],
    ["a webhook over 16 KB", `{"input":{},"webhook":"${"x".repeat(17_000)}"}`, "member-too-large"],
    ["members beyond count", `{"input":{${'"a":1,'.repeat(5000)}"b":1}}`, "too-many-members"],
    ["policies beyond count", `{"input":{},${'"policy":1,'.repeat(5000)}"b":1}`, "too-many-members"],
    ["a bad escape far into its webhook", `{"input":{},"webhook":"${"x".repeat(5000)}\\q"}`, "not-json"],
    ["a control far into its policy", `{"input":{},"policy":["${"x".repeat(5000)}\u0001"]}`, "not-json"],
    ["too much nesting", `{"input":{"a":${"[".repeat(600)}${"]".repeat(600)}}}`, "too-deep"],
  ])("with %s is refused", async (_, text, fault) => {
    for (const sizes of [[text.length], [997]]) {
      const { outcome, sent, log } = await relay(bytesOf(text), { sizes });
      expect(outcome).toEqual({ accepted: false, fault });
      expect(sent.complete).toBe(false);
      expect(log.cancelled).toBeDefined();
    }
  });

  it("is refused by its stated length before a byte is read, and by its bytes as they flow", async () => {
    const bytes = bytesOf(`{"input":{"a":"${"x".repeat(2000)}"}}`);
    const fits = await relay(bytes, { limitBytes: bytes.length, chunked: true });
    expect(fits.outcome.accepted).toBe(true);
    const stated = await relay(bytes, { limitBytes: bytes.length - 1 });
    expect(stated.outcome).toEqual({ accepted: false, fault: "too-large" });
    expect(stated.log.read).toBe(0);
    const flowing = await relay(bytes, { limitBytes: bytes.length - 1, chunked: true, sizes: [500] });
    expect(flowing.outcome).toEqual({ accepted: false, fault: "too-large" });
    expect(flowing.sent.complete).toBe(false);
  });

  it("holds its last byte until the verdict, and is cut off when that is a refusal", async () => {
    const bytes = bytesOf('{"input":{"steps":99}}');
    let sent = 0;
    const { source } = cutSource(bytes, [5]);
    const { stream, done } = scanRequest<string>({
      source,
      length: bytes.length,
      limitBytes: MiB,
      inject,
      bufferBytes: 4096,
      verdict: async ({ input }) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        expect(sent).toBe(bytes.length + inject.length - 1);
        return Number(input.get("steps")?.value) > 50 ? "steps: at most 50" : undefined;
      },
    });
    const reading = (async () => {
      for await (const chunk of stream) sent += chunk.length;
    })();
    await expect(reading).rejects.toThrow();
    expect(await done).toEqual({ accepted: false, fault: "refused", refusal: "steps: at most 50" });
    expect(sent).toBe(bytes.length + inject.length - 1);
  });

  it("is cut off when the verdict throws, and says so to the one who asks", async () => {
    const { source } = cutSource(bytesOf('{"input":{}}'), [5]);
    const boom = new Error("boom");
    const verdict = () => Promise.reject(boom);
    const { stream, done } = scanRequest<string>({ source, length: 12, limitBytes: MiB, inject, verdict });
    const [sent] = await Promise.all([drain(stream), expect(done).rejects.toBe(boom)]);
    expect(sent.complete).toBe(false);
  });
});
