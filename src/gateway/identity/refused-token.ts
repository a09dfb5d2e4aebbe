// Why a token is not accepted, told to its bearer: which claim failed, and no more.
import { errors as jose } from "jose";
import { Problem } from "../../errors.ts";

const challenge = { "WWW-Authenticate": "Bearer" };

export function unauthorized(detail: string): Problem {
  return new Problem("UNAUTHORIZED", detail, challenge);
}

export function expired(): Problem {
  return new Problem("TOKEN_EXPIRED", "The token has expired.", challenge);
}

export function revoked(): Problem {
  return new Problem("TOKEN_REVOKED", "The token was revoked.", challenge);
}

export function badClaim(claim: string): Problem {
  return unauthorized(`The token's "${claim}" is not accepted.`);
}

/** What verifying threw. A fault of ours is no refusal, and is thrown on. */
export function refusedToken(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  if (thrown instanceof jose.JWTExpired) return expired();
  if (thrown instanceof jose.JWTClaimValidationFailed) {
    return thrown.reason === "missing" ? unauthorized(`The token has no "${thrown.claim}".`) : badClaim(thrown.claim);
  }
  if (thrown instanceof jose.JOSEAlgNotAllowed) return badClaim("alg");
  if (thrown instanceof jose.JWKSNoMatchingKey || thrown instanceof jose.JWKSMultipleMatchingKeys)
    return badClaim("kid");
  if (thrown instanceof jose.JWSSignatureVerificationFailed) return unauthorized("The token's signature is not valid.");
  if (thrown instanceof jose.JOSEError) return unauthorized("The token is not well-formed.");
  throw thrown;
}
