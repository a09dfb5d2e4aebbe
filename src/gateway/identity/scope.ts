// What a token may be used for: the operations and the models that it names.
import { Problem } from "../../errors.ts";
import type { Guard } from "../behind.ts";
import type { GatewayEnv } from "../env.ts";
import type { Principal } from "./principal.ts";

/** As the routes spell them; `images` and `usage` are the caller's own gallery and account. */
export const operationNames = [
  "run",
  "runsync",
  "status",
  "status-sync",
  "stream",
  "events",
  "cancel",
  "retry",
  "health",
  "purge-queue",
  "requests",
  "openai",
  "images",
  "usage",
] as const;
export type OperationName = (typeof operationNames)[number];

/** Why it is refused; undefined where it is not. */
export function refusal(
  { operations, models }: Pick<Principal, "operations" | "models">,
  operation: OperationName,
  model: string | undefined,
): Problem | undefined {
  if (operations && !operations.includes(operation)) {
    return new Problem("OPERATION_FORBIDDEN", `This token is not for the operation "${operation}".`);
  }
  if (models && model !== undefined && !models.includes(model)) {
    return new Problem("MODEL_FORBIDDEN", "This token is not for this model.");
  }
  return undefined;
}

/** Stands behind `authenticate`, on a route whose model is `:model` if it has one. */
export function permitted(operation: OperationName): Guard<GatewayEnv> {
  return (c) => {
    c.get("exchange").operation = operation;
    const refused = refusal(c.get("principal"), operation, c.req.param("model"));
    if (refused) throw refused;
  };
}
