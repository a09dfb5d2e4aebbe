// A body that is held whole says the same of itself, whether the runtime read its bytes or its text.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJson, readText } from "../../src/http/body.ts";
import { HeldBody, isShort } from "../../src/http/held-body.ts";
import { SecretSearch } from "../../src/json/secret-search.ts";
import { bytesOf } from "../json/cut-source.ts";

const held = async (bytes: Uint8Array, mayBeMarked = false) =>
  HeldBody.ofText(await readText(new Response(bytes)), bytes.byteLength, mayBeMarked);

const mark = new Uint8Array([0xef, 0xbb, 0xbf]);
const notJson = { fault: "not-json" };

describe("a short body, read as text", () => {
  it("is as short as no JSON that is too deep", () => {
    expect([undefined, 0, 1024, 1025].map(isShort)).toEqual([false, true, true, false]);
  });

  it.each(['{"a":1}', '{"a":"é€😀"}', '"\ufffd"', '["\\ufffd", "\ufffd\ufffd"]', '"\u0080\uffff"'])(
    "is the JSON that its bytes are: %s",
    async (text) => {
      const body = await held(bytesOf(text));
      expect(body.json()).toEqual({ value: JSON.parse(text) });
      expect(body.bytes).toEqual(bytesOf(text));
    },
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
    expect((await held(new Uint8Array([0x22, ...junk, 0x22]))).json()).toEqual(notJson);
    expect((await held(new Uint8Array([0x22, ...bytesOf("é\ufffd"), ...junk, 0x22]))).json()).toEqual(notJson);
  });

  it("may have a byte order mark where that is said, and else is no JSON", async () => {
    const marked = new Uint8Array([...mark, ...bytesOf('{"a":"é"}')]);
    expect((await held(marked)).json()).toEqual(notJson);
    expect((await held(marked, true)).json()).toEqual({ value: { a: "é" } });
    expect((await held(new Uint8Array([...mark, 0x22, 0xff, 0x22]), true)).json()).toEqual(notJson);
  });

  it("gets the verdict of its bytes, whatever it is, but for a character of four bytes that lacks its last", async () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary", maxLength: 4 }).map((text) => [...bytesOf(JSON.stringify(text).slice(1, -1))]),
      fc.array(fc.integer({ min: 0x20, max: 0xff }), { maxLength: 4 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (pieces) => {
        const bytes = new Uint8Array([0x22, ...pieces.flat(), 0x22]);
        const [asBytes, asText] = [parseJson(bytes), (await held(bytes)).json()];
        if (!/\xf0[\x90-\xbf][\x80-\xbf]|[\xf1-\xf4][\x80-\xbf]{2}/.test(String.fromCharCode(...bytes)))
          expect(asText).toEqual(asBytes);
        else if (!("fault" in asBytes)) expect(asText).toEqual(asBytes);
      }),
    );
  });

  it("holds a secret in whatever spelling its bytes do", async () => {
    const secret = "key-of-the-upstream-0123456789";
    const search = new SecretSearch([secret]);
    const spelled = fc.constantFrom(
      secret,
      secret.replace("k", "\\u006b"),
      secret.replace("-", "%2d"),
      ...[0, 1, 2].map((before) => btoa(`${"?".repeat(before)}${secret}`)),
      btoa(`>>>${secret}`).replaceAll("+", "-").replaceAll("/", "_"),
      secret.slice(1),
      "nothing",
    );
    await fc.assert(
      fc.asyncProperty(
        fc.string({ maxLength: 9 }),
        spelled,
        fc.string({ maxLength: 9 }),
        async (before, said, after) => {
          const bytes = bytesOf(before + said + after);
          expect((await held(bytes)).holds(search)).toBe(search.finds(bytes));
          expect(HeldBody.ofBytes(bytes).holds(search)).toBe(search.finds(bytes));
        },
      ),
    );
  });
});
