// The keys of the app's identity provider: fetched when needed, kept by the isolate, fetched anew when they rotate.
// jose's createRemoteJWKSet does the same with one difference, which is why this file exists: while the provider cannot
// be reached, jose refuses every token as soon as its keys are ten minutes old. Here the last keys go on to count until
// they are an hour old, so that an outage of the provider does not sign out the users of the app.
import { createLocalJWKSet, errors, type JWSHeaderParameters } from "jose";
import * as z from "zod";
import { Problem } from "../../errors.ts";
import { readBounded, tryParseJson } from "../../http/small-body.ts";
import { isRecent } from "../../isolate/recent.ts";

export type Fetch = (request: Request) => Promise<Response>;

/** A key that is withdrawn stops counting after this long. */
const freshMs = 10 * 60_000;
/** While the provider cannot be reached, its last keys count this long. */
const staleMs = 60 * 60_000;
/** A key id that is made up makes us ask again this seldom. */
const unknownKeyPauseMs = 30_000;
const timeoutMs = 5_000;
/** From a question that failed to the next one; a question that was not answered in time has used up half of it. */
const failurePauseMs = 10_000;
const maxBytes = 256 * 1024;

/** jose takes only public keys of it: a secret or a private key that is shared with the world proves nothing. */
const jwksSchema = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

type LocalKeySet = ReturnType<typeof createLocalJWKSet>;

export class KeySet {
  readonly #url: string;
  readonly #fetch: Fetch;
  #keys: LocalKeySet | undefined;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(url: string, fetch: Fetch) {
    this.#url = url;
    this.#fetch = fetch;
  }

  async find(header: JWSHeaderParameters, now: number): Promise<CryptoKey> {
    const keys = await this.#current(now);
    try {
      return await keys(header);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      if (isRecent(this.#fetchedAt, unknownKeyPauseMs, now)) throw error;
      return (await this.#renew(now))(header);
    }
  }

  async #current(now: number): Promise<LocalKeySet> {
    if (this.#keys && isRecent(this.#fetchedAt, freshMs, now)) return this.#keys;
    try {
      return await this.#renew(now);
    } catch (error) {
      if (this.#keys && isRecent(this.#fetchedAt, staleMs, now)) return this.#keys;
      throw error;
    }
  }

  /** Concurrent calls each fetch: a promise belongs to the request that made it. */
  async #renew(now: number): Promise<LocalKeySet> {
    if (isRecent(this.#failedAt, failurePauseMs, now)) throw unavailable();
    try {
      this.#keys = createLocalJWKSet(await this.#download());
      this.#fetchedAt = now;
      return this.#keys;
    } catch (error) {
      this.#failedAt = now;
      console.error(JSON.stringify({ setting: "JWKS_URL", problem: String(error).slice(0, 300) }));
      throw unavailable();
    }
  }

  async #download(): Promise<z.output<typeof jwksSchema>> {
    const signal = AbortSignal.timeout(timeoutMs);
    const headers = { Accept: "application/json" };
    const answer = await this.#fetch(new Request(this.#url, { headers, redirect: "manual", signal }));
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    const bytes = await readBounded(answer.body, maxBytes);
    if (!bytes) throw new Error(`is larger than ${maxBytes} bytes`);
    return jwksSchema.parse(tryParseJson(bytes));
  }
}

function unavailable(): Problem {
  return new Problem("IDENTITY_UNAVAILABLE", "The app's identity provider cannot be reached.", { "Retry-After": "5" });
}
