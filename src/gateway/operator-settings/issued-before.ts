// Whether a token was issued before its user was revoked, by clocks of two hosts.

/** The host that issues tokens may be ahead of the one that revokes. */
const toleranceMs = 5_000;

export function isIssuedBefore(issuedAt: number, revokedAt: number): boolean {
  return issuedAt <= revokedAt + toleranceMs;
}
