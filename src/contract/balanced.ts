// Load-balancing endpoints at both faces: what their routes take, and what the balancer itself may answer.
import * as z from "zod";
import type { ErrorCode } from "../errors.ts";

/** Others are passed on too; these are the ones that a document can name. */
const methods = ["get", "post", "put", "patch", "delete"] as const;

/** A statement for each method of a path that is the workers' own. */
export function balancedStatements<S extends object>(statement: S) {
  return methods.map((method) => ({ ...statement, method, contentType: "*/*", answer: z.unknown() }));
}

export const balancedErrors = [
  ...(["INVALID_REQUEST", "NOT_FOUND", "NO_WORKERS", "WORKER_GONE", "WORKER_BUSY", "WORKER_TOO_SLOW"] as const),
  ...(["PAYLOAD_TOO_LARGE", "REQUEST_TIMEOUT"] as const),
  ...(["UPSTREAM_UNREACHABLE", "UPSTREAM_BAD_ANSWER", "UPSTREAM_TOO_LARGE"] as const),
] satisfies readonly ErrorCode[];
