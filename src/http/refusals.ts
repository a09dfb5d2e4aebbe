// Problems as responses, in the shape that the caller's client reads.
import { asProblem, describeFaults, Problem, renderOpenAiProblem, renderProblem } from "../errors.ts";
import type { Exchange } from "./exchange.ts";

export function refuse(thrown: unknown, exchange: Pick<Exchange, "requestId" | "errorShape" | "code">): Response {
  const problem = asProblem(thrown);
  exchange.code = problem.code;
  return Response.json(render(problem, exchange), { status: problem.status, headers: problem.headers });
}

function render(problem: Problem, { requestId, errorShape }: Pick<Exchange, "requestId" | "errorShape">) {
  if (errorShape === "openai") return renderOpenAiProblem(problem, requestId);
  const body = renderProblem(problem, requestId);
  return errorShape === "management" ? { ...body, message: problem.message } : body;
}

interface Checked {
  readonly success: boolean;
  readonly error?: { readonly issues: readonly { path: readonly PropertyKey[]; message: string }[] };
}

/** The hook of every zod-validator: a fault becomes the one error shape, each fault with its path. */
export function orRefuse(checked: Checked): void {
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error?.issues ?? [], "request"));
}
