// Tokens that the app's backend has us mint for its users: what they may say, and what they are worth.
import * as z from "zod";
import { microUsd } from "../../micro-usd.ts";
import { modelNameSchema, planNameSchema, rulesSchema, usdSchema } from "../operator-settings/rules.ts";
import { operationNames } from "./operations.ts";
import { defaultLifetimeSeconds, maxLifetimeSeconds, type Signed, signOwn, verifyOwn } from "./own-jwt.ts";
import { isUserId, userOwner } from "./owners.ts";
import { hashOwner, type Principal } from "./principal.ts";
import type { SigningKeys } from "./signing.ts";

const grants = {
  plan: planNameSchema.optional(),
  models: z.array(modelNameSchema).min(1).max(100).optional().describe("The only models that the token is for."),
  operations: z
    .array(z.enum(operationNames))
    .min(1)
    .optional()
    .describe("The only operations that the token is for, as the routes spell them."),
  maxCostUsd: usdSchema.optional().describe("What the token may spend in all."),
  rules: rulesSchema.optional().describe("Further rules. They narrow the plan's, never widen them."),
};

/** Strict: a misspelt limit would be none. */
export const mintSchema = z
  .strictObject({
    user: z.string().refine(isUserId, "expected 1 to 256 characters, none of them a control character"),
    ...grants,
    ttlSeconds: z.int().min(1).max(maxLifetimeSeconds).default(defaultLifetimeSeconds),
  })
  .meta({ id: "TokenRequest" });
export type MintRequest = z.output<typeof mintSchema>;

const claimsSchema = z.object({ sub: z.string().refine(isUserId), ...grants });

export function mintToken(keys: SigningKeys, request: MintRequest, now: number): Promise<Signed> {
  const { user, ttlSeconds, ...claims } = request;
  return signOwn(keys, "token", { ...claims, sub: user }, { now, lifetimeSeconds: ttlSeconds });
}

export async function verifyToken(keys: SigningKeys, token: string, now: number): Promise<Principal> {
  const claims = await verifyOwn(keys, "token", token, claimsSchema, now);
  const { plan, models, operations, rules, maxCostUsd } = claims;
  const owner = userOwner(claims.sub);
  return {
    kind: "user",
    owner,
    payer: owner,
    ownerHash: hashOwner(keys, owner),
    tokenId: claims.jti,
    issuedAt: claims.iat * 1000,
    expiresAt: claims.exp * 1000,
    ...(plan !== undefined && { plan }),
    ...(models && { models }),
    ...(operations && { operations }),
    ...(rules && { rules }),
    ...(maxCostUsd !== undefined && { maxCostMicroUsd: microUsd(maxCostUsd) }),
  };
}
