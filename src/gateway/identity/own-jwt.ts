// The JWTs that we sign ourselves: tokens and sessions, each kind with its own key and its own `typ`.
import { errors, type JWTPayload, jwtVerify, SignJWT } from "jose";
import * as z from "zod";
import { badClaim } from "./refused-token.ts";
import type { SigningKeys } from "./signing.ts";

export type OwnKind = "token" | "session";

export const ownTypes: Readonly<Record<OwnKind, string>> = {
  token: "sluice-token+jwt",
  session: "sluice-session+jwt",
};

const issuer = "sluice";
export const maxLifetimeSeconds = 24 * 60 * 60;
export const defaultLifetimeSeconds = 60 * 60;

/** What every one of ours says. The times are in seconds; `iat` with its fraction, for the sake of revocation. */
const baseSchema = z.object({ sub: z.string(), jti: z.string(), iat: z.number(), exp: z.number() });
export type OwnClaims<T extends object = object> = z.output<typeof baseSchema> & T;

export interface Signed {
  readonly token: string;
  readonly expiresAt: number;
}

export async function signOwn(
  keys: SigningKeys,
  kind: OwnKind,
  { sub, ...claims }: { sub: string } & Record<string, unknown>,
  { now, lifetimeSeconds }: { now: number; lifetimeSeconds: number },
): Promise<Signed> {
  const exp = Math.floor(now / 1000) + lifetimeSeconds;
  const [key] = await keys.ofJwt(kind);
  const token = await new SignJWT({ ...claims, iss: issuer, sub, jti: crypto.randomUUID(), iat: now / 1000, exp })
    .setProtectedHeader({ alg: "HS256", typ: ownTypes[kind] })
    .sign(key);
  return { token, expiresAt: exp * 1000 };
}

/**
 * The kind's own key is what tells tokens from sessions: a `typ` only says which to try.
 * Throws what jose throws, or a Problem that names the claim.
 */
export async function verifyOwn<T extends z.ZodObject>(
  keys: SigningKeys,
  kind: OwnKind,
  token: string,
  schema: T,
  now: number,
): Promise<OwnClaims<z.output<T>>> {
  const accepted = await keys.ofJwt(kind);
  const payload = await verifyByAny(token, accepted, {
    algorithms: ["HS256"],
    issuer,
    requiredClaims: ["sub", "jti", "iat", "exp"],
    currentDate: new Date(now),
  });
  const base = baseSchema.safeParse(payload);
  if (!base.success) throw badClaim(String(base.error.issues[0]?.path[0]));
  if (base.data.exp - base.data.iat > maxLifetimeSeconds) throw badClaim("exp");
  const own = schema.safeParse(payload);
  if (!own.success) throw badClaim(String(own.error.issues[0]?.path[0]));
  return { ...base.data, ...own.data };
}

/** The newest key first; only a signature that does not hold is tried by the next. */
async function verifyByAny(
  token: string,
  [key, ...older]: readonly [CryptoKey, ...CryptoKey[]],
  options: NonNullable<Parameters<typeof jwtVerify>[2]>,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, key, options)).payload;
  } catch (error) {
    const [next, ...others] = older;
    if (!next || !(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    return verifyByAny(token, [next, ...others], options);
  }
}
