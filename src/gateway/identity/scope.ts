// What a token may be used for: the operations and the models that it names.
import { Problem } from "../../errors.ts";
import type { Guard } from "../gateway-route.ts";
import type { OperationName } from "./operations.ts";
import type { Principal } from "./principal.ts";

/** What any route may answer that stands behind `authenticate` and `permitted`. */
export const callerErrors = ["UNAUTHORIZED", "TOKEN_EXPIRED", "TOKEN_REVOKED", "OPERATION_FORBIDDEN"] as const;

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
export function permitted(operation: OperationName): Guard {
  return ({ exchange, principal, params }) => {
    exchange.operation = operation;
    const refused = refusal(principal, operation, params["model"]);
    if (refused) throw refused;
  };
}
