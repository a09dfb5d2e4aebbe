// The attack table on tokens: each row starts from a token that gets in, changes one thing, and is told which.
import fc from "fast-check";
import { exportSPKI, importJWK, type JWTPayload, SignJWT } from "jose";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ErrorCode } from "../../../src/errors.ts";
import { signOwn } from "../../../src/gateway/identity/own-jwt.ts";
import { mintSession } from "../../../src/gateway/identity/session-token.ts";
import { SigningKeys } from "../../../src/gateway/identity/signing.ts";
import { mintToken } from "../../../src/gateway/identity/tokens.ts";
import { amount } from "../../support/amount.ts";
import { ask, isolate, refusalOf, send } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import {
  decodePart,
  encodePart,
  forgeHmac,
  makeProviderKey,
  providerSettings,
  signJwt,
  signRaw,
  usualClaims,
} from "../../support/provider.ts";
import { testSettings } from "../../support/settings.ts";

const provider = await makeProviderKey("current");
const stranger = await makeProviderKey("current");
const publicPem = await exportSPKI((await importJWK(provider.publicJwk, "RS256", { extractable: true })) as CryptoKey);
const keys = new SigningKeys([testSettings.SIGNING_SECRET]);
const now = Date.now();
const seconds = Math.floor(now / 1000);
const header = { alg: "RS256", kid: "current" };

const mint = (at = now) =>
  mintToken(keys, { user: "ada", plan: "pro", ttlSeconds: 3600 }, at).then(({ token }) => token);
const visitor = { owner: `anon:${"a1".repeat(16)}`, payer: "addr:203.0.113.7/32" };
const visit = (at = now) => mintSession(keys, visitor, at).then(({ token }) => token);
const jwt = (change: object = {}) => signJwt(provider, { ...usualClaims(now), ...change });
const without = (claim: string) => {
  const { [claim]: _, ...claims } = usualClaims(now);
  return signJwt(provider, claims);
};
/** The same token, its parts put through a change, its signature not made anew. */
const edit = async (token: Promise<string>, change: (parts: [string, string, string]) => readonly string[]) =>
  change((await token).split(".") as [string, string, string]).join(".");
const claimInstead = (token: Promise<string>, claims: object) =>
  edit(token, ([head, body, mac]) => [head, encodePart({ ...decodePart(body), ...claims }), mac]);
const headInstead = (token: Promise<string>, head: object) =>
  edit(token, ([old, body, mac]) => [encodePart({ ...decodePart(old), ...head }), body, mac]);

type Row = [attack: string, make: () => Promise<string>, detail: RegExp, code?: ErrorCode];
const signature = /signature/;
const form = /well-formed/;

const onAppJwts: Row[] = [
  ["alg none, no signature", () => forged({ alg: "none" }, ""), /"alg"/],
  ["alg None, no signature", () => forged({ alg: "None" }, ""), /"alg"/],
  ["alg none, the old signature", () => headInstead(jwt(), { alg: "none" }), /"alg"/],
  ["no alg", () => signRaw(provider, { kid: "current" }, usualClaims(now)), form],
  [
    "HS256 under the public key as PEM",
    () => forgeHmac({ ...header, alg: "HS256" }, usualClaims(now), publicPem),
    /"alg"/,
  ],
  [
    "HS256 under the modulus",
    () => forgeHmac({ ...header, alg: "HS256" }, usualClaims(now), `${provider.publicJwk.n}`),
    /"alg"/,
  ],
  ["HS256 under nothing much", () => forgeHmac({ ...header, alg: "HS256" }, usualClaims(now), "x"), /"alg"/],
  [
    "HS256 under SIGNING_SECRET itself",
    () => forgeHmac({ ...header, alg: "HS256" }, usualClaims(now), testSettings.SIGNING_SECRET),
    /"alg"/,
  ],
  ["PS256 named over an RS256 signature", () => headInstead(jwt(), { alg: "PS256" }), /"kid"/],
  ["expired", () => jwt({ iat: seconds - 700, exp: seconds - 10 }), /expired/, "TOKEN_EXPIRED"],
  ["not valid yet", () => jwt({ nbf: seconds + 10 }), /"nbf"/],
  ["issued in the future", () => jwt({ iat: seconds + 10 }), /"iat"/],
  ["another audience", () => jwt({ aud: "another-app" }), /"aud"/],
  ["an audience that only begins alike", () => jwt({ aud: "app2" }), /"aud"/],
  ["no audience", () => without("aud"), /no "aud"/],
  ["another issuer", () => jwt({ iss: "https://id.example.org/" }), /"iss"/],
  ["no issuer", () => without("iss"), /no "iss"/],
  ["our own issuer", () => jwt({ iss: "sluice" }), /"iss"/],
  ["no subject", () => without("sub"), /no "sub"/],
  ["an empty subject", () => jwt({ sub: "" }), /"sub"/],
  ["a subject that is no string", () => signRaw(provider, header, { ...usualClaims(now), sub: ["ada"] }), /"sub"/],
  ["a subject with a line break", () => jwt({ sub: "ada\nadmin" }), /"sub"/],
  ["a subject with half a character", () => jwt({ sub: "ada\ud800" }), /"sub"/],
  ["no end", () => without("exp"), /no "exp"/],
  ["an end that is no number", () => signRaw(provider, header, { ...usualClaims(now), exp: "never" }), /"exp"/],
  ["a key id that is a path", () => signJwt(provider, usualClaims(now), { kid: "../../../dev/null" }), /"kid"/],
  ["a key id that is SQL", () => signJwt(provider, usualClaims(now), { kid: "x' UNION SELECT 'k" }), /"kid"/],
  ["a key id that is no string", () => signRaw(provider, { ...header, kid: ["current"] }, usualClaims(now)), /"kid"/],
  ["another key under the known id", () => signJwt(stranger, usualClaims(now)), signature],
  ["another key, no id", () => signRaw(stranger, { alg: "RS256" }, usualClaims(now)), signature],
  ["another key, sent along as jwk", () => signJwt(stranger, usualClaims(now), { jwk: stranger.publicJwk }), signature],
  [
    "another key, pointed at by jku",
    () => signJwt(stranger, usualClaims(now), { jku: "https://evil.example/keys" }),
    signature,
  ],
  [
    "another key, pointed at by x5u",
    () => signJwt(stranger, usualClaims(now), { x5u: "https://evil.example/crt" }),
    signature,
  ],
  [
    "a critical header that nobody knows",
    () => signRaw(provider, { ...header, crit: ["x"], x: 1 }, usualClaims(now)),
    form,
  ],
  [
    "a payload that is not encoded",
    () => signRaw(provider, { ...header, crit: ["b64"], b64: false }, usualClaims(now)),
    form,
  ],
  ["the signature stripped", () => edit(jwt(), ([head, body]) => [head, body, ""]), signature],
  ["two parts", () => edit(jwt(), ([head, body]) => [head, body]), form],
  ["four parts", () => edit(jwt(), (parts) => [...parts, parts[2]]), form],
  ["parts swapped", () => edit(jwt(), ([head, body, mac]) => [body, head, mac]), form],
  ["the signature truncated", () => edit(jwt(), ([head, body, mac]) => [head, body, mac.slice(0, -8)]), signature],
  [
    "the signature of another token",
    () => jwt({ sub: "eve" }).then((other) => edit(jwt(), ([h, b]) => [h, b, `${other.split(".")[2]}`])),
    signature,
  ],
  ["another subject under the old signature", () => claimInstead(jwt(), { sub: "eve" }), signature],
  ["a better plan under the old signature", () => claimInstead(jwt(), { plan: "unlimited" }), signature],
  ["typed as one of ours", () => signJwt(provider, usualClaims(now), { typ: "sluice-token+jwt" }), /"alg"/],
  ["claims that are no object", () => signRaw(provider, header, ["sub", "ada"]), form],
];

const onMintedTokens: Row[] = [
  [
    "alg none, no signature",
    () => edit(headInstead(mint(), { alg: "none" }), ([head, body]) => [head, body, ""]),
    /"alg"/,
  ],
  ["HS512 named", () => headInstead(mint(), { alg: "HS512" }), /"alg"/],
  ["signed with the provider's key", () => signJwt(provider, mintClaims(), { typ: "sluice-token+jwt" }), /"alg"/],
  ["under SIGNING_SECRET itself", () => forgeHmac(ownHeader, mintClaims(), testSettings.SIGNING_SECRET), signature],
  ["under the key that opens nothing: the webhook's", () => forgeHmac(ownHeader, mintClaims(), "webhook"), signature],
  [
    "under a secret that was rotated out",
    () =>
      mintToken(new SigningKeys(["the-secret-of-last-year-0123456789"]), { user: "ada", ttlSeconds: 60 }, now).then(
        ({ token }) => token,
      ),
    signature,
  ],
  ["expired", () => mint(now - 3_601_000), /expired/, "TOKEN_EXPIRED"],
  [
    "that lives longer than a day",
    () => signOwn(keys, "token", { sub: "ada" }, { now, lifetimeSeconds: 86_500 }).then(({ token }) => token),
    /"exp"/,
  ],
  ["another user under the old signature", () => claimInstead(mint(), { sub: "eve" }), signature],
  [
    "a later end under the old signature",
    () => claimInstead(mint(now - 3_601_000), { exp: seconds + 3600 }),
    signature,
  ],
  ["of another issuer, under our key", () => signUnderOurKey({ ...mintClaims(), iss: "sluice2" }), /"iss"/],
  [
    "without an id, so that it could not be revoked",
    () => signUnderOurKey({ iss: "sluice", sub: "ada", iat: seconds, exp: seconds + 60 }),
    /no "jti"/,
  ],
  ["typed as a session", () => headInstead(mint(), { typ: "sluice-session+jwt" }), signature],
  [
    "as a session, signed as a token",
    () =>
      signOwn(keys, "token", { sub: visitor.owner, payer: visitor.payer }, { now, lifetimeSeconds: 60 }).then(
        (signed) => headInstead(Promise.resolve(signed.token), { typ: "sluice-session+jwt" }),
      ),
    signature,
  ],
  ["typed as the provider's", () => headInstead(mint(), { typ: "JWT" }), /"alg"/],
  ["truncated", () => mint().then((token) => token.slice(0, -3)), signature],
  [
    "with rules that no plan could have",
    () =>
      signOwn(keys, "token", { sub: "ada", rules: [{ unit: "wishes" }] }, { now, lifetimeSeconds: 60 }).then(
        ({ token }) => token,
      ),
    /"rules"/,
  ],
  ["nothing", async () => "..", form],
  ["not a token at all", async () => "let-me-in", form],
  ["the app's secret", async () => testSettings.APP_SECRET, form],
  ["the platform's key", async () => testSettings.PLATFORM_API_KEY, form],
  ["the operator's key but for its end", async () => testSettings.ADMIN_TOKEN.slice(0, -1), form],
];

const onSessions: Row[] = [
  ["typed as a token", () => headInstead(visit(), { typ: "sluice-token+jwt" }), signature],
  [
    "a user's name in it",
    () =>
      signOwn(keys, "session", { ...visitor, sub: "user:ada" }, { now, lifetimeSeconds: 60 }).then(
        ({ token }) => token,
      ),
    /"sub"/,
  ],
  [
    "a user's meter in it",
    () =>
      signOwn(keys, "session", { sub: visitor.owner, payer: "user:ada" }, { now, lifetimeSeconds: 60 }).then(
        ({ token }) => token,
      ),
    /"payer"/,
  ],
  [
    "another address under the old signature",
    () => claimInstead(visit(), { payer: "addr:198.51.100.1/32" }),
    signature,
  ],
  ["expired", () => visit(now - 3_601_000), /expired/, "TOKEN_EXPIRED"],
];

const ownHeader = { alg: "HS256", typ: "sluice-token+jwt" };
function mintClaims() {
  return { iss: "sluice", sub: "ada", jti: "1", iat: seconds, exp: seconds + 60 };
}
async function signUnderOurKey(claims: JWTPayload): Promise<string> {
  const [key] = await keys.ofJwt("token");
  return new SignJWT(claims).setProtectedHeader(ownHeader).sign(key);
}
async function forged(head: object, mac: string): Promise<string> {
  return `${encodePart({ ...header, ...head })}.${encodePart(usualClaims(now))}.${mac}`;
}

beforeEach(() => {
  vi.setSystemTime(now);
  vi.spyOn(globalThis, "fetch").mockImplementation(async (request) => {
    expect(new Request(request).url).toBe(providerSettings.JWKS_URL);
    return Response.json({ keys: [provider.publicJwk] });
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await emptyStorage();
});

describe("what gets in", () => {
  it.each<[string, () => Promise<string>, string]>([
    ["a JWT of the provider's", jwt, "user:ada"],
    ["a minted token", mint, "user:ada"],
    ["a session", visit, visitor.owner],
    ["the operator's key", async () => testSettings.ADMIN_TOKEN, "operator"],
  ])("%s", async (_, make, owner) => {
    const response = await ask(isolate(providerSettings), await make());
    expect(await response.json()).toMatchObject({ owner });
  });

  it("a token of the older secret, while both are accepted", async () => {
    const rotated = isolate({
      SIGNING_SECRET: `the-new-secret-of-the-tests-0123456789,${testSettings.SIGNING_SECRET}`,
    });
    expect((await ask(rotated, await mint())).status).toBe(200);
  });
});

describe.each([
  ["a JWT of the provider's", jwt, onAppJwts],
  ["a minted token", mint, onMintedTokens],
  ["a session", visit, onSessions],
] as const)("%s does not get in", (_, valid, attacks) => {
  it.each(attacks)("%s", async (_, make, detail, code = "UNAUTHORIZED") => {
    const within = isolate(providerSettings);
    expect((await ask(within, await valid())).status).toBe(200);
    const response = await ask(within, await make());
    expect(response.headers.get("WWW-Authenticate")).toBe("Bearer");
    expect(await refusalOf(response)).toEqual({ status: 401, code, detail: expect.stringMatching(detail) });
  });
});

describe("whatever a client sends as a token", () => {
  const within = isolate(providerSettings);
  const types = fc.constantFrom("JWT", "sluice-token+jwt", "sluice-session+jwt", undefined);
  const algorithms = fc.constantFrom<unknown>("RS256", "HS256", "ES256", "EdDSA", "none", 5, null, undefined);
  const oddHeader = fc.record(
    { typ: types, alg: algorithms, kid: fc.jsonValue(), crit: fc.jsonValue(), b64: fc.jsonValue() },
    { requiredKeys: [] },
  );
  const part = fc.oneof(fc.base64String(), fc.json().map(encodePart), fc.constant(""));
  const structured = fc.tuple(fc.oneof(oddHeader.map(encodePart), part), part, part).map((parts) => parts.join("."));
  const printable = fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)) });

  it("is refused with a 401, and never a 500", async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(structured, printable), async (token) => {
        expect((await ask(within, token)).status).toBe(401);
      }),
      { numRuns: amount(1000) },
    );
  });
});

describe("a token that was good", () => {
  const revoke = (within: Env, user: string, body: object = {}) =>
    send(within, "POST", `/admin/users/${user}/revoke`, { key: testSettings.ADMIN_TOKEN, body });

  it.each<[string, () => Promise<string>, string]>([
    ["a JWT of the provider's", jwt, "ada"],
    ["a JWT that does not say when it was issued", () => without("iat"), "ada"],
    ["a minted token", mint, "user:ada"],
    ["a session", visit, visitor.owner],
  ])("%s, is refused once its user is revoked, and others are not", async (_, make, user) => {
    const within = isolate(providerSettings);
    const token = await make();
    expect((await ask(within, token)).status).toBe(200);
    expect((await revoke(within, user)).status).toBe(200);
    expect(await refusalOf(await ask(within, token))).toMatchObject({ status: 401, code: "TOKEN_REVOKED" });
    expect((await ask(within, await jwt({ sub: "bob" }))).status).toBe(200);
    /** The revoker's clock may be behind the issuer's by five seconds. */
    vi.setSystemTime(now + 5000);
    if (user !== visitor.owner) expect((await ask(within, await mint(now + 5000))).status).toBe(401);
    vi.setSystemTime(now + 6000);
    if (user !== visitor.owner) expect((await ask(within, await mint(now + 6000))).status).toBe(200);
  });

  it.each<[string, () => Promise<string>]>([
    ["a JWT of the provider's", () => jwt({ exp: seconds + 120 })],
    ["a minted token", () => mint(now - 58 * 60_000)],
    ["a session", () => visit(now - 58 * 60_000)],
  ])("%s, is refused once its time is over, though the isolate has just verified it", async (_, make) => {
    const within = isolate(providerSettings);
    const token = await make();
    expect((await ask(within, token)).status).toBe(200);
    vi.setSystemTime(now + 130_000);
    expect(await refusalOf(await ask(within, token))).toMatchObject({ status: 401, code: "TOKEN_EXPIRED" });
  });

  it("is refused once it alone is revoked, and its user's others are not", async () => {
    const within = isolate(providerSettings);
    const [token, other] = [await mint(), await mint()];
    expect((await ask(within, token)).status).toBe(200);
    await revoke(within, "ada", { tokenId: decodePart(`${token.split(".")[1]}`)["jti"] });
    expect(await refusalOf(await ask(within, token))).toMatchObject({ code: "TOKEN_REVOKED" });
    expect((await ask(within, other)).status).toBe(200);
  });

  it("is refused within 20 s where another isolate revoked it", async () => {
    const [here, there] = [isolate(providerSettings), isolate(providerSettings)];
    const token = await mint();
    expect((await ask(there, token)).status).toBe(200);
    await revoke(here, "ada");
    expect((await ask(there, token)).status).toBe(200);
    vi.setSystemTime(now + 20_000);
    expect(await refusalOf(await ask(there, token))).toMatchObject({ code: "TOKEN_REVOKED" });
  });

  it("is refused when sessions are switched off", async () => {
    const token = await visit();
    expect((await ask(isolate(), token)).status).toBe(200);
    expect(await refusalOf(await ask(isolate({ ANONYMOUS: "off" }), token))).toMatchObject({ code: "ANONYMOUS_OFF" });
  });

  it("is refused where no provider is set, if it is the provider's", async () => {
    const refusal = await refusalOf(await ask(isolate(), await jwt()));
    expect(refusal).toMatchObject({ code: "UNAUTHORIZED", detail: expect.stringMatching(/kind/) });
  });

  it("is asked for where there is none", async () => {
    expect(await refusalOf(await ask(isolate()))).toMatchObject({
      code: "UNAUTHORIZED",
      detail: expect.stringMatching(/needed/),
    });
  });

  it("is refused where nobody can tell whether it was revoked", async () => {
    const CONTROL = { getByName: () => ({ snapshot: () => Promise.reject(new Error("overloaded")) }) };
    const response = await ask(isolate({ CONTROL }), await mint());
    expect(await refusalOf(response)).toMatchObject({ status: 503, code: "CONTROL_UNAVAILABLE" });
  });
});
