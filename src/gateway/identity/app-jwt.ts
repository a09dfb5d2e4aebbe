// JWTs of the app's own identity provider: whose they are, and which plan they claim.
import { type JWTPayload, jwtVerify } from "jose";
import type { Config } from "../../config.ts";
import { planNameSchema } from "../operator-settings/rules.ts";
import type { KeySet } from "./jwks.ts";
import { isUserId, userOwner } from "./owners.ts";
import { hashOwner, type Principal } from "./principal.ts";
import { badClaim } from "./refused-token.ts";
import type { SigningKeys } from "./signing.ts";

/** Signatures by a private key, and nothing that a public key could be the secret of. */
const algorithms = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
/** How far the provider's clock may be from ours. */
const clockToleranceSeconds = 5;

export async function verifyAppJwt(
  token: string,
  settings: NonNullable<Config["jwt"]>,
  keySet: KeySet,
  signingKeys: SigningKeys,
  now: number,
): Promise<Principal> {
  const { payload } = await jwtVerify(token, (header) => keySet.find(header, now), {
    algorithms,
    issuer: settings.issuer,
    audience: settings.audience,
    requiredClaims: ["sub", "exp"],
    clockTolerance: clockToleranceSeconds,
    currentDate: new Date(now),
  });
  const { sub, exp = 0, iat = 0, jti } = payload;
  if (!isUserId(sub)) throw badClaim("sub");
  if (iat > now / 1000 + clockToleranceSeconds) throw badClaim("iat");
  const owner = userOwner(sub);
  const plan = readPlan(payload, settings.planClaim);
  return {
    kind: "user",
    owner,
    payer: owner,
    ownerHash: hashOwner(signingKeys, owner),
    issuedAt: iat * 1000,
    expiresAt: exp * 1000,
    ...(plan !== undefined && { plan }),
    ...(isUserId(jti) && { tokenId: jti }),
  };
}

/** The claim by its name, which may be a URL; else a path with dots, as in `app_metadata.plan`. */
function readPlan(payload: JWTPayload, claim: string | undefined): string | undefined {
  if (claim === undefined) return undefined;
  const value = Object.hasOwn(payload, claim) ? payload[claim] : claim.split(".").reduce<unknown>(member, payload);
  return planNameSchema.safeParse(value).data;
}

function member(value: unknown, key: string): unknown {
  const holds = typeof value === "object" && value !== null && Object.hasOwn(value, key);
  return holds ? (value as Record<string, unknown>)[key] : undefined;
}
