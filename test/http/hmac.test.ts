// Our HMAC held against the runtime's own, over every length that matters and any text.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HmacKey, hashHex } from "../../src/http/hmac.ts";
import { amount } from "../support/amount.ts";

const encoder = new TextEncoder();

async function byRuntime(secret: Uint8Array<ArrayBuffer>, text: string): Promise<string> {
  // The runtime takes no empty key; one of zeros is the same key.
  const raw = secret.byteLength === 0 ? new Uint8Array(1) : secret;
  const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(text))).toHex();
}

describe("an HMAC", () => {
  it("is RFC 4231's", () => {
    const key = new HmacKey(encoder.encode("Jefe"));
    const mac = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    expect(key.sign("what do ya want for nothing?").toHex()).toBe(mac);
  });

  it("is the runtime's for every length of text around three blocks, and of key around one", async () => {
    for (let length = 0; length < 200; length++) {
      const [text, secret] = ["x".repeat(length), new Uint8Array(length).fill(length)];
      const short = new Uint8Array(32).fill(7);
      expect(new HmacKey(short).sign(text).toHex()).toBe(await byRuntime(short, text));
      expect(new HmacKey(secret).sign("text").toHex()).toBe(await byRuntime(secret, "text"));
    }
  });

  it("is the runtime's for any key and text, whatever was signed before", async () => {
    const secrets = fc.uint8Array({ maxLength: 100 }).map((bytes) => Uint8Array.from(bytes));
    await fc.assert(
      fc.asyncProperty(secrets, fc.string({ unit: "grapheme", maxLength: 2000 }), async (secret, text) => {
        const key = new HmacKey(secret);
        key.sign(`${text} and more`);
        const mac = await byRuntime(secret, text);
        expect(key.sign(text).toHex()).toBe(mac);
        expect([key.signHex(text, 64), key.signHex(text, 128)]).toEqual([mac.slice(0, 16), mac.slice(0, 32)]);
      }),
      { numRuns: amount(100, 2000) },
    );
  });
});

describe("a hash of a text", () => {
  it("is the runtime's, whatever was hashed or signed before", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme", maxLength: 2000 }), async (text) => {
        new HmacKey(new Uint8Array(32)).sign(`${text} and more`);
        const hash = await crypto.subtle.digest("SHA-256", encoder.encode(text));
        expect(hashHex(text)).toBe(new Uint8Array(hash).toHex());
      }),
      { numRuns: amount(100, 2000) },
    );
  });
});
