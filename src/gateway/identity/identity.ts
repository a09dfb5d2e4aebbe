// From a key to its principal: what kind of key it is, whether it holds, and what the isolate remembers of it.
import { decodeProtectedHeader } from "jose";
import type { Config } from "../../config.ts";
import { sameKey } from "../../http/keys.ts";
import { BoundedMemory } from "../../isolate/bounded-memory.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";
import { verifyAppJwt } from "./app-jwt.ts";
import { type Fetch, KeySet } from "./jwks.ts";
import { ownTypes } from "./own-jwt.ts";
import { hashOwner, type Principal } from "./principal.ts";
import { refusedToken, unauthorized } from "./refused-token.ts";
import { anonymousIsOff, verifySession } from "./session-token.ts";
import { type SigningKeys, signingKeysOf } from "./signing.ts";
import { verifyToken } from "./tokens.ts";

/** How long a verified token is trusted after the provider withdrew its signing key. */
const rememberMs = 5 * 60_000;
const memoryLimit = 8 * 1024 * 1024;
const operatorOwner = "operator";

export class Identity {
  readonly #config: Config;
  readonly #keys: SigningKeys;
  readonly #appKeys: KeySet | undefined;
  readonly #verified = new BoundedMemory<Principal>(memoryLimit);

  constructor(config: Config, keys: SigningKeys, fetch: Fetch) {
    this.#config = config;
    this.#keys = keys;
    this.#appKeys = config.jwt && new KeySet(config.jwt.url, fetch);
  }

  /** A token that was verified a moment ago costs no cryptography. */
  recall(key: string, now: number): Principal | undefined {
    return this.#verified.get(key, now);
  }

  /** Throws a Problem if the key is not accepted. */
  async identify(key: string, now: number): Promise<Principal> {
    if (await sameKey(key, this.#config.adminToken)) return this.#operator();
    const principal = await this.#verify(key, now).catch((error: unknown) => {
      throw refusedToken(error);
    });
    this.#verified.set(key, principal, Math.min(now + rememberMs, principal.expiresAt ?? 0));
    return principal;
  }

  #verify(token: string, now: number): Promise<Principal> {
    const type = readType(token);
    if (type === ownTypes.token) return verifyToken(this.#keys, token, now);
    if (type === ownTypes.session) return this.#verifySession(token, now);
    const { jwt } = this.#config;
    if (!jwt || !this.#appKeys) throw unauthorized("The token is of a kind that is not accepted here.");
    return verifyAppJwt(token, jwt, this.#appKeys, this.#keys, now);
  }

  async #verifySession(token: string, now: number): Promise<Principal> {
    const { anonymous, sessionPlan } = this.#config;
    if (anonymous === "off") throw anonymousIsOff();
    return verifySession(this.#keys, token, sessionPlan, now);
  }

  async #operator(): Promise<Principal> {
    const ownerHash = hashOwner(this.#keys, operatorOwner);
    return { kind: "operator", owner: operatorOwner, payer: operatorOwner, ownerHash, issuedAt: 0 };
  }
}

export const identityOf = memoizeBy(
  (config: Config) => new Identity(config, signingKeysOf(config), (request) => fetch(request)),
);

/** Says only which way to verify: nothing in a header is believed before its signature is. */
function readType(token: string): unknown {
  try {
    return decodeProtectedHeader(token).typ;
  } catch {
    throw unauthorized("The token is not well-formed.");
  }
}
