// An identity provider of the tests' own: its keys, what it publishes, the JWTs that it signs, and ones it never would.
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";

export const providerSettings = {
  JWKS_URL: "https://id.example.com/keys",
  JWT_ISSUER: "https://id.example.com/",
  JWT_AUDIENCE: "app",
  JWT_PLAN_CLAIM: "plan",
};

export interface ProviderKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly publicJwk: JWK;
}

export async function makeProviderKey(kid: string, alg = "RS256"): Promise<ProviderKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
}

export function usualClaims(now = Date.now()): JWTPayload {
  const seconds = Math.floor(now / 1000);
  return {
    iss: providerSettings.JWT_ISSUER,
    aud: providerSettings.JWT_AUDIENCE,
    sub: "ada",
    jti: "jwt-1",
    plan: "pro",
    iat: seconds,
    exp: seconds + 600,
  };
}

export function signJwt(key: ProviderKey, claims: JWTPayload, header: object = {}): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: key.alg, kid: key.kid, ...header }).sign(key.privateKey);
}

const encoder = new TextEncoder();

export function encodePart(value: unknown): string {
  const bytes = typeof value === "string" ? encoder.encode(value) : encoder.encode(JSON.stringify(value));
  return encodeBytes(bytes);
}

export function decodePart(part: string): Record<string, unknown> {
  return JSON.parse(atob(part.replaceAll("-", "+").replaceAll("_", "/")));
}

/** A JWT that no library would write: any header, signed with HMAC under any bytes. */
export async function forgeHmac(header: object, claims: object, secret: string): Promise<string> {
  const text = `${encodePart(header)}.${encodePart(claims)}`;
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign"]);
  return `${text}.${encodeBytes(new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(text))))}`;
}

/** A JWT with any header, signed by the provider's own key. */
export async function signRaw(key: ProviderKey, header: object, claims: object): Promise<string> {
  const text = `${encodePart(header)}.${encodePart(claims)}`;
  const signature = await crypto.subtle.sign("RSASSA-PKCS1-v1_5", key.privateKey, encoder.encode(text));
  return `${text}.${encodeBytes(new Uint8Array(signature))}`;
}

function encodeBytes(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
