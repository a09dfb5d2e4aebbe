// Who calls, once it is known.
import type { Rule } from "../operator-settings/rules.ts";
import type { OperationName } from "./operations.ts";
import { type SigningKeys, signFields } from "./signing.ts";

export interface Principal {
  readonly kind: "user" | "anonymous" | "operator";
  /** The owner of jobs, pictures and idempotency keys: `user:<id>`, `anon:<random>`, `operator`. */
  readonly owner: string;
  /** Whose meter counts: usually the owner. For an anonymous visitor it is the IP address, `addr:<prefix>`. */
  readonly payer: string;
  /** The owner as the log may have it. */
  readonly ownerHash: string;
  /**
   * The plan that the token claims; undefined is the default plan. The operator's setting for the user overrides it.
   */
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
