// A secret is found in whatever spelling, and however it comes in pieces; where it is not, nothing is.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FOUND, SecretSearch } from "../../src/json/secret-search.ts";
import { SecretStream } from "../../src/json/secret-stream.ts";
import { amount } from "../support/amount.ts";
import { anyKey, anySpelling, anySurrounding } from "./secret-spelled.ts";

const encoder = new TextEncoder();
const key = "sk-0123456789/abcdef+ghijklm_nopqrstuv";

/** What went on of a text that comes in pieces of these sizes, over and over; undefined where it was stopped. */
function passed(search: SecretSearch, text: Uint8Array, sizes: readonly number[]): { out: string; found: boolean } {
  const stream = new SecretStream(search);
  const decoder = new TextDecoder("latin1");
  let out = "";
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    const clear = stream.take(text.slice(at, at + size));
    if (!clear) return { out, found: true };
    out += decoder.decode(clear);
    at += size;
  }
  return { out: out + decoder.decode(stream.held), found: false };
}

describe("a secret", () => {
  it("is found in any spelling, whatever stands around it, in whatever pieces it comes", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(
        anyKey,
        anySpelling,
        anySurrounding,
        anySurrounding,
        sizes,
        (secret, spell, before, after, pieces) => {
          const search = new SecretSearch([secret]);
          const text = encoder.encode(before + spell(secret) + after);
          expect(search.finds(text)).toBe(true);
          expect(passed(search, text, pieces).found).toBe(true);
        },
      ),
      { numRuns: amount(1000, 50) },
    );
  });

  it("is held back at every place where its text may be cut, and no byte of it leaves", () => {
    const write = [
      (text: string) => text,
      (text: string) => Array.from(text, (c) => `\\u00${c.charCodeAt(0).toString(16)}`).join(""),
      (text: string) => Array.from(text, (c) => `%${c.charCodeAt(0).toString(16)}`).join(""),
      (text: string) => btoa(text).replaceAll("=", ""),
    ];
    const search = new SecretSearch(["an-older-key-that-is-on-its-way-out", key]);
    for (const spell of write) {
      const text = encoder.encode(`{"#":"${spell(key)}"}`);
      for (let cut = 1; cut < text.length; cut++) {
        const { out, found } = passed(search, text, [cut, text.length]);
        expect({ cut, found }).toEqual({ cut, found: true });
        expect('{"#":"').toContain(out);
      }
    }
  });

  it("that is rotated out is found as well as the new one", () => {
    const search = new SecretSearch([key, "the-old-key-of-the-service-0123456789"]);
    expect(search.finds(encoder.encode("x the-old-key-of-the-service-0123456789 y"))).toBe(true);
    expect(search.finds(encoder.encode(`x ${key} y`))).toBe(true);
  });
});

/** In base64 a character at either end is written together with its neighbour: with so few missing the rest is the same. */
const sharedCharacters = 4;

describe("a text without the secret", () => {
  it("passes as it is, however much of the secret is in it", () => {
    const part = fc
      .tuple(fc.nat(key.length - 1), fc.nat(key.length))
      .map(([from, to]) => (to - from > key.length - sharedCharacters ? "" : key.slice(from, to)));
    const spelledPart = fc.tuple(anySpelling, part).map(([spell, text]) => spell(text));
    const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 5 });
    const search = new SecretSearch([key]);
    const text = fc.array(fc.oneof(anySurrounding, spelledPart), { maxLength: 6 }).map((parts) => parts.join(" "));
    fc.assert(
      fc.property(text, sizes, (said, pieces) => {
        const bytes = encoder.encode(said);
        expect(search.finds(bytes)).toBe(false);
        const { out, found } = passed(search, bytes, pieces);
        expect(found).toBe(false);
        expect(out === new TextDecoder("latin1").decode(bytes)).toBe(true);
      }),
      { numRuns: amount(2000) },
    );
  });

  it("waits for no more than its spelling could take", () => {
    const search = new SecretSearch([key]);
    const bytes = encoder.encode("\\u005c".repeat(50_000));
    expect(bytes.length - search.look(bytes, 0, bytes.length)).toBeLessThanOrEqual(search.longest);
    expect(search.look(encoder.encode("a word"), 0, 6)).toBe(6);
  });

  it("is anything, where a secret is a word", () => {
    expect(new SecretSearch(["none", ""]).look(encoder.encode("none"), 0, 4)).not.toBe(FOUND);
  });
});
