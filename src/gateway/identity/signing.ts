// The keys derived from SIGNING_SECRET, one per purpose: a signature for one purpose is worthless for another.
import type { Config } from "../../config.ts";
import { HmacKey } from "../../http/hmac.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";

export type Purpose = "handle" | "hook" | "media" | "ticket" | "upload" | "owner-hash";
export type JwtPurpose = "token" | "session";
type Keys<Key> = readonly [Key, ...Key[]];

const encoder = new TextEncoder();

export class SigningKeys {
  readonly #secrets: readonly HmacKey[];
  readonly #derived = new Map<Purpose, Keys<HmacKey>>();
  /** Keys, not promises of them: a promise belongs to the request that made it. */
  readonly #jwt = new Map<JwtPurpose, Keys<CryptoKey>>();

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets.map((secret) => new HmacKey(encoder.encode(secret)));
  }

  /** The first signs, all are accepted. */
  of(purpose: Purpose): Keys<HmacKey> {
    const known = this.#derived.get(purpose);
    if (known) return known;
    const keys = signingFirst(this.#derive(purpose).map((bytes) => new HmacKey(bytes)));
    this.#derived.set(purpose, keys);
    return keys;
  }

  /** The same for what signs JWTs. */
  async ofJwt(purpose: JwtPurpose): Promise<Keys<CryptoKey>> {
    const known = this.#jwt.get(purpose);
    if (known) return known;
    const hmac = { name: "HMAC", hash: "SHA-256" };
    const imported = this.#derive(purpose).map((bytes) => {
      return crypto.subtle.importKey("raw", bytes, hmac, false, ["sign", "verify"]);
    });
    const keys = signingFirst(await Promise.all(imported));
    this.#jwt.set(purpose, keys);
    return keys;
  }

  /**
   * What proves to the app's backend that a webhook is ours, newest first. Its backend knows this key; the other
   * purposes' keys cannot be had from it.
   */
  webhookSecrets(): string[] {
    return this.#derive("webhook").map((key) => `whsec_${btoa(String.fromCharCode(...key))}`);
  }

  #derive(label: string): Uint8Array<ArrayBuffer>[] {
    return this.#secrets.map((secret) => secret.sign(label));
  }
}

function signingFirst<Key>([signs, ...accepted]: Key[]): Keys<Key> {
  if (!signs) throw new Error("SIGNING_SECRET is empty");
  return [signs, ...accepted];
}

export const signingKeysOf = memoizeBy((config: Config) => new SigningKeys(config.signingSecrets));

/**
 * Fields under one key, in hex. Each is led by its length, so that no two lists of them read alike. A lone surrogate
 * has no bytes of its own, so fields are well-formed strings; what reads them from outside sees to that.
 */
export function signFields(key: HmacKey, fields: readonly string[], bits: 64 | 128): string {
  let text = "";
  for (const field of fields) text += `${field.length}:${field}`;
  return key.signHex(text, bits);
}

/** Takes as long for every wrong mac. */
export function sameMac(given: string, expected: string): boolean {
  const left = encoder.encode(given);
  const right = encoder.encode(expected);
  return left.byteLength === right.byteLength && crypto.subtle.timingSafeEqual(left, right);
}
