// What is said of a body that could not be read, or is not what it should be.
import { type ErrorCode, Problem } from "../errors.ts";
import type { BodyFault } from "../json/body-fault.ts";
import type { JsonFault } from "../json/json-scanner.ts";

/** What a route that reads a body may answer, beside `INVALID_REQUEST`. */
export const bodyErrors = [
  "INVALID_JSON",
  "PAYLOAD_TOO_LARGE",
  "REQUEST_TIMEOUT",
  "UNSUPPORTED_TYPE",
] as const satisfies readonly ErrorCode[];

/** Nothing decodes a body here: a compressed one would be told that it is no JSON. */
export function refuseEncoded({ headers }: Pick<Request, "headers">): void {
  if (isEncoded(headers)) throw new Problem("UNSUPPORTED_TYPE", "Content-Encoding: none is taken");
}

export function isEncoded(headers: Headers): boolean {
  return !/^(|identity)$/i.test(headers.get("Content-Encoding") ?? "");
}

export function bodyProblem(fault: BodyFault | JsonFault, limitBytes: number): Problem {
  switch (fault) {
    case "too-large":
      return new Problem("PAYLOAD_TOO_LARGE", `The body is larger than ${limitBytes} bytes.`);
    case "too-slow":
      return new Problem("REQUEST_TIMEOUT", "body: does not come, or comes too slowly");
    case "source-gone":
      return new Problem("INVALID_REQUEST", "body: broke off");
    case "not-json":
      return new Problem("INVALID_JSON", "body: is not valid JSON");
    case "too-deep":
      return new Problem("INVALID_JSON", "body: is nested too deep");
  }
}
