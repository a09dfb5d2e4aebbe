// What an anonymous visitor holds: an owner made up for it, and the address that pays.
import * as z from "zod";
import { Problem } from "../../errors.ts";
import { defaultLifetimeSeconds, type Signed, signOwn, verifyOwn } from "./own-jwt.ts";
import { addressPayerPattern, anonymousOwnerPattern } from "./owners.ts";
import { hashOwner, type Principal } from "./principal.ts";
import type { SigningKeys } from "./signing.ts";

const claimsSchema = z.object({
  sub: z.string().regex(anonymousOwnerPattern),
  payer: z.string().regex(addressPayerPattern),
});

export function anonymousIsOff(): Problem {
  return new Problem("ANONYMOUS_OFF", "This app serves signed-in users only.");
}

/** The payer stays the address of this moment, so that a job's meter is found again from another network. */
export function mintSession(
  keys: SigningKeys,
  { owner, payer }: Pick<Principal, "owner" | "payer">,
  now: number,
): Promise<Signed> {
  return signOwn(keys, "session", { sub: owner, payer }, { now, lifetimeSeconds: defaultLifetimeSeconds });
}

/** Its plan is the current plan of sessions, not the one of when the token was minted. */
export async function verifySession(keys: SigningKeys, token: string, plan: string, now: number): Promise<Principal> {
  const claims = await verifyOwn(keys, "session", token, claimsSchema, now);
  return {
    kind: "anonymous",
    owner: claims.sub,
    payer: claims.payer,
    ownerHash: hashOwner(keys, claims.sub),
    plan,
    tokenId: claims.jti,
    issuedAt: claims.iat * 1000,
    expiresAt: claims.exp * 1000,
  };
}
