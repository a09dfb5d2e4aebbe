// The keys that come of SIGNING_SECRET, one for each purpose: what is signed for one is worth nothing elsewhere.
import type { Config } from "../config.ts";
import { oncePer } from "../wire/once-per.ts";

export type Purpose = "token" | "session" | "handle" | "hook" | "media" | "ticket" | "owner-hash";

const encoder = new TextEncoder();
const hmac = { name: "HMAC", hash: "SHA-256" };

export class SigningKeys {
  readonly #secrets: readonly string[];
  /** Keys, not promises of them: a promise belongs to the request that made it. */
  readonly #derived = new Map<Purpose, readonly [CryptoKey, ...CryptoKey[]]>();

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
  }

  /** The first signs, all are accepted. */
  async of(purpose: Purpose): Promise<readonly [CryptoKey, ...CryptoKey[]]> {
    const known = this.#derived.get(purpose);
    if (known) return known;
    const [signs, ...accepted] = await Promise.all(this.#secrets.map((secret) => derive(secret, purpose)));
    if (!signs) throw new Error("SIGNING_SECRET is empty");
    this.#derived.set(purpose, [signs, ...accepted]);
    return [signs, ...accepted];
  }

  /**
   * What proves to the app's backend that a webhook is ours, newest first. Its backend knows this key; the other
   * purposes' keys cannot be had from it.
   */
  async webhookSecrets(): Promise<string[]> {
    const keys = await Promise.all(this.#secrets.map((secret) => mac(secret, "webhook")));
    return keys.map((key) => `whsec_${btoa(String.fromCharCode(...key))}`);
  }
}

export const signingKeysOf = oncePer((config: Config) => new SigningKeys(config.signingSecrets));

/**
 * Fields under one key, in hex. Each is led by its length, so that no two lists of them read alike. A lone surrogate
 * has no bytes of its own, so fields are well-formed strings; what reads them from outside sees to that.
 */
export async function signFields(key: CryptoKey, fields: readonly string[], bits: 64 | 128): Promise<string> {
  const text = fields.map((field) => `${field.length}:${field}`).join("");
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(text)));
  return mac.subarray(0, bits / 8).toHex();
}

/** Takes as long for every wrong mac. */
export function sameMac(given: string, expected: string): boolean {
  const [left, right] = [encoder.encode(given), encoder.encode(expected)];
  return left.byteLength === right.byteLength && crypto.subtle.timingSafeEqual(left, right);
}

async function derive(secret: string, purpose: Purpose): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", await mac(secret, purpose), hmac, false, ["sign", "verify"]);
}

async function mac(secret: string, label: string): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), hmac, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(label)));
}
