// UTF-8 is checked across every cut, and a quote is found where it is, not where the decoded text has it.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { quoteEnd } from "../../src/json/json-bytes.ts";
import { Utf8Text, utf8 } from "../../src/json/utf8-text.ts";
import { amount } from "../support/amount.ts";
import { bytesOf } from "./cut-source.ts";

const isUtf8 = (bytes: Uint8Array): boolean => {
  try {
    utf8().decode(bytes);
    return true;
  } catch {
    return false;
  }
};

describe("UTF-8 as it comes", () => {
  it("finds the quote after half a character that is longer in text than in bytes", () => {
    const text = new Utf8Text();
    const bytes = bytesOf('😀x"yé');
    expect(text.take(bytes, 0, 3)).toBe(true);
    expect(text.take(bytes, 3, bytes.length)).toBe(true);
    expect(quoteEnd(bytes, 3, bytes.length)).toBe(5);
  });

  it("finds the first quote from anywhere, in slices of any alphabet", () => {
    const part = fc.constantFrom("x".repeat(33_000), "y".repeat(32_768), '"', "é", "日".repeat(11_000), "😀", "z");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 9 }), fc.nat(200_000), fc.nat(200_000), (parts, cut, from) => {
        const bytes = bytesOf(parts.join(""));
        const text = new Utf8Text();
        const middle = Math.min(cut, bytes.length);
        expect(text.take(bytes, 0, middle) && text.take(bytes, middle, bytes.length)).toBe(true);
        const at = Math.min(middle + from, bytes.length);
        const found = bytes.indexOf(0x22, at);
        expect(quoteEnd(bytes, at, bytes.length)).toBe(found < 0 ? bytes.length : found);
      }),
      { numRuns: amount(2000) },
    );
  }, 60_000);

  it("refuses what is not UTF-8, wherever it is cut", () => {
    for (const junk of [
      [0xc0, 0xaf],
      [0xed, 0xa0, 0x80],
      [0xff],
      [0x80],
      [0xf4, 0x90, 0x80, 0x80],
      [0xe6, 0x97, 0x41],
      [0xe6],
      [0xf0, 0x9f],
      [0xf8, 0x88, 0x80, 0x80],
    ]) {
      const bytes = new Uint8Array([0x61, ...junk, 0x62]);
      expect(isUtf8(bytes)).toBe(false);
      for (let cut = 0; cut <= bytes.length; cut++) {
        const text = new Utf8Text();
        expect(text.take(bytes, 0, cut) && text.take(bytes, cut, bytes.length)).toBe(false);
      }
    }
  });
});
