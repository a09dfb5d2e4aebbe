// A short answer is read as text, and means the same as its bytes would.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Clock } from "../../../src/gateway/upstream/clock.ts";
import { defaultTimes } from "../../../src/gateway/upstream/upstream.ts";
import { parseAnswer, readAnswer } from "../../../src/gateway/upstream/upstream-body.ts";
import { parseJson } from "../../../src/http/body.ts";
import { SecretSearch } from "../../../src/json/secret-search.ts";
import { bytesOf } from "../../json/cut-source.ts";

const secret = "key-of-the-upstream-0123456789";
const keySearch = new SecretSearch([secret]);

async function read(bytes: Uint8Array) {
  const response = new Response(bytes, { headers: { "Content-Length": String(bytes.byteLength) } });
  const answered = { response, clock: new Clock(1000), upstream: { keySearch, times: defaultTimes }, askedAt: 0 };
  const answer = await readAnswer(answered, { headBytes: 64 * 1024 });
  if ("large" in answer) throw new Error("it is small");
  return answer;
}

const parse = async (bytes: Uint8Array) => parseAnswer(await read(bytes), keySearch);
const mark = [0xef, 0xbb, 0xbf];

describe("a short answer", () => {
  it("is text up to the length that no JSON needs which is nested too deep", async () => {
    expect(await read(bytesOf(`"${"x".repeat(1022)}"`))).toHaveProperty("text");
    expect(await read(bytesOf(`"${"x".repeat(1023)}"`))).toHaveProperty("bytes");
    expect(await parse(bytesOf("[".repeat(512) + "]".repeat(512)))).toBeDefined();
    expect(await parse(bytesOf("[".repeat(513) + "]".repeat(513)))).toBeUndefined();
  });

  it.each(['{"a":1}', '{"a":"é€😀"}', '"\ufffd"', '["\\ufffd", "\ufffd\ufffd"]', '"\u0080\uffff"'])(
    "is the JSON that its bytes are: %s",
    async (text) => expect(await parse(bytesOf(text))).toEqual({ value: JSON.parse(text), holdsKey: false }),
  );

  it.each([
    ["a lone byte", [0xff]],
    ["a byte that goes on with nothing", [0x80]],
    ["half of a character of two bytes", [0xc3]],
    ["two thirds of one of three", [0xe2, 0x82]],
    ["half of one of four", [0xf0, 0x9f]],
    ["half of a pair of surrogates", [0xed, 0xa0, 0xbd]],
    ["a character in too many bytes", [0xc0, 0xaf]],
    ["many of them", [0xff, 0xfe, 0xfd]],
  ])("is no JSON with what is no UTF-8: %s", async (_, junk) => {
    expect(await parse(new Uint8Array([0x22, ...junk, 0x22]))).toBeUndefined();
    expect(await parse(new Uint8Array([0x22, ...bytesOf("é\ufffd"), ...junk, 0x22]))).toBeUndefined();
    expect(await parse(new Uint8Array([...mark, 0x22, ...junk, 0x22]))).toBeUndefined();
  });

  it("may have a byte order mark, as some services write it", async () => {
    const value = { a: "é" };
    expect(await parse(new Uint8Array([...mark, ...bytesOf(JSON.stringify(value))]))).toEqual({
      value,
      holdsKey: false,
    });
  });

  it("gets the verdict of its bytes, whatever it is, but for a character of four bytes that lacks its last", async () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary", maxLength: 4 }).map((text) => [...bytesOf(JSON.stringify(text).slice(1, -1))]),
      fc.array(fc.integer({ min: 0x20, max: 0xff }), { maxLength: 4 }),
    );
    const lacksItsLast = /\xf0[\x90-\xbf][\x80-\xbf]|[\xf1-\xf4][\x80-\xbf]{2}/;
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (pieces) => {
        const bytes = new Uint8Array([0x22, ...pieces.flat(), 0x22]);
        const [asBytes, asText] = [parseJson(bytes), await parse(bytes)];
        if (!("fault" in asBytes)) expect(asText).toMatchObject(asBytes);
        else if (!lacksItsLast.test(String.fromCharCode(...bytes))) expect(asText).toBeUndefined();
      }),
    );
  });

  it("holds the key in whatever spelling its bytes do", async () => {
    const spelled = fc.constantFrom(
      secret,
      secret.replace("k", "\\u006b"),
      secret.replace("-", "%2d"),
      ...[0, 1, 2].map((before) => btoa(`${"?".repeat(before)}${secret}`)),
      btoa(`>>>${secret}`).replaceAll("+", "-").replaceAll("/", "_"),
      secret.slice(1),
      "nothing",
    );
    const plain = fc.string({ maxLength: 9 }).map((text) => JSON.stringify(text).slice(1, -1));
    await fc.assert(
      fc.asyncProperty(plain, spelled, plain, async (before, said, after) => {
        const bytes = bytesOf(`"${before}${said}${after}"`);
        expect((await parse(bytes))?.holdsKey).toBe(keySearch.finds(bytes));
      }),
    );
  });
});
