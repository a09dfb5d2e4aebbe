// Who calls, once it is known.
import type { Rule } from "../rules.ts";
import { type SigningKeys, signFields } from "../signing.ts";
import type { OperationName } from "./scope.ts";

export interface Principal {
  readonly kind: "user" | "anonymous" | "operator";
  /** Whose the jobs, the pictures and the idempotency keys are: `user:<id>`, `anon:<random>`, `operator`. */
  readonly owner: string;
  /** Whose meter counts: the owner's, but for an anonymous visitor the address's, `addr:<prefix>`. */
  readonly payer: string;
  /** The owner as the log may have it. */
  readonly ownerHash: string;
  /** The plan that the token claims; undefined is the default plan. The operator's override goes before it. */
  readonly plan?: string;
  readonly tokenId?: string;
  /** Milliseconds; 0 where the token does not say, so that any revocation of its user counts. */
  readonly issuedAt: number;
  readonly expiresAt?: number;
  /** What the token narrows; undefined is no narrowing. */
  readonly models?: readonly string[];
  readonly operations?: readonly OperationName[];
  readonly rules?: readonly Rule[];
  readonly maxCostMicroUsd?: number;
}

export function hashOwner(keys: SigningKeys, owner: string): string {
  const [key] = keys.of("owner-hash");
  return signFields(key, [owner], 64);
}
